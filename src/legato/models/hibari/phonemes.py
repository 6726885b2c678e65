"""Text to phoneme ids, with the voice's own English G2P (no GPL code)."""

import json
import re
from pathlib import Path

import numpy as np
from hibari.g2p import ASSETS, G2P
from numpy.typing import NDArray

LONGEST = 400
"""Phonemes the network was trained on in one go; more are spoken in pieces."""

_MARKS = frozenset(';:,.!?—…"()“” ˈˌː↓→↗↘̃ʰʲ')  # ids that make no sound by themselves
_PAUSES = ",;:—.!?…"

# What the G2P cannot take: it names numbers up to 10**36 only, and its time grows with the cube of a word's parts
# (a segment of "a-a-a-…" took 1.4 s).
_LONG_NUMBER = re.compile(r"(?:\d,?){36,}\d")
_LONG_WORD = re.compile(r"(?:[^\W_]+[^\w\s]+){16}(?=\w)")


class Phonemizer:
    """Reads English text. Holds no state between calls."""

    def __init__(self) -> None:
        self._g2p = G2P()
        vocabulary: dict[str, int] = json.loads((Path(ASSETS) / "vocab.json").read_text(encoding="utf-8"))
        self._ids = vocabulary
        self._sounds = frozenset(vocabulary) - _MARKS

    def pieces(self, text: str) -> list[NDArray[np.int64]]:
        """Phoneme ids [n] with the pads at both ends, a piece for every 400 phonemes; [] when nothing can be spoken.

        Characters that English has no sound for are left out. A number of more than 36 digits is read digit by digit.
        """
        text = _LONG_NUMBER.sub(lambda number: " ".join(number[0].replace(",", "")), text)
        phonemes = self._g2p(_LONG_WORD.sub(r"\g<0> ", text))
        out: list[NDArray[np.int64]] = []
        while phonemes:
            cut = _cut(phonemes)
            piece, phonemes = phonemes[:cut], phonemes[cut:].lstrip()
            if not self._sounds.isdisjoint(piece):
                ids = (self._ids.get(character) for character in piece.strip())
                out.append(np.array([0, *(i for i in ids if i is not None), 0], np.int64))
        return out


def _cut(phonemes: str) -> int:
    """Where to end a piece: after the last pause that fits, else the last space, else at the limit."""
    if len(phonemes) <= LONGEST:
        return len(phonemes)
    pause = max(phonemes.rfind(mark, 1, LONGEST) for mark in _PAUSES)
    return (pause if pause > 0 else phonemes.rfind(" ", 1, LONGEST)) + 1 or LONGEST
