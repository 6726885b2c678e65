"""From IPA to what a Piper voice takes, and which phonemizer reads the text for it.

A voice was trained on espeak-ng's IPA. Its map has an id (or several) for each Unicode character of the decomposed
string; between the ids stand pads: `^ _ h _ ə _ l _ … $`.
"""

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from legato.errors import ConfigError, MissingExtra, VoiceFileError
from legato.models.piper.english import SYMBOLS, EnglishPhonemizer
from legato.models.piper.espeak import EspeakPhonemizer, find_program

_START, _PAD, _END = "^", "_", "$"
_PAUSES = ".,!?;:"
_BELONGS_TO_THE_NEXT = "ˈˌ"


class Phonemizer(Protocol):
    """Reads text. Safe to use from several threads."""

    def phonemes(self, text: str) -> str:
        """IPA of the text: words between spaces, one of .,!?;: at the end of a clause; "" when nothing is spoken."""


def encode(ipa: str, id_map: Mapping[str, Sequence[int]]) -> NDArray[np.int64]:
    """Ids [n] of the phonemes, with start, end and pads. Characters that the voice does not know are left out.

    Raises:
        VoiceFileError: the map has no start, pad or end.
    """
    try:
        start, pad, end = (id_map[mark] for mark in (_START, _PAD, _END))
    except KeyError as error:
        raise VoiceFileError(f"the voice's phoneme_id_map has no {error}; is it a Piper voice?") from None
    ids = [*start, *pad]
    for character in unicodedata.normalize("NFD", ipa):
        if character in id_map and character not in (_START, _PAD, _END):
            ids += id_map[character]
            ids += pad
    return np.array([*ids, *end], np.int64)


def pieces(ipa: str, limit: int) -> list[str]:
    """The IPA, decomposed, in pieces of `limit` characters at most; [] when there is nothing but space.

    A piece ends after the last pause mark that fits, else before the last space, and only a word that is too long by
    itself is cut in two: not between a sound and the marks that belong to it, as long as it is longer than them. Only
    the space around a cut is lost.
    """
    if limit < 1:
        raise ValueError(f"limit must be 1 or more, not {limit}")
    rest = unicodedata.normalize("NFD", ipa).strip()
    out: list[str] = []
    while rest:
        cut = _cut(rest, limit)
        out.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return out


def _cut(ipa: str, limit: int) -> int:
    """Where the first piece ends."""
    if len(ipa) <= limit:
        return len(ipa)
    spaces = [at for at in range(1, limit + 1) if ipa[at].isspace()]
    if spaces:
        return next((at for at in reversed(spaces) if ipa[at - 1] in _PAUSES), spaces[-1])
    inside = (at for at in range(limit, 0, -1) if not _is_mark(ipa[at]) and ipa[at - 1] not in _BELONGS_TO_THE_NEXT)
    return next(inside, limit)


def _is_mark(character: str) -> bool:
    """Length, tone, combining marks, pauses: what belongs to the sound before it."""
    if character in _BELONGS_TO_THE_NEXT:
        return False
    return character in _PAUSES or unicodedata.category(character) in {"Lm", "Mn", "Nd", "Sk"}


def speakable(ipa: str) -> bool:
    """Whether there is a sound in it, not only pauses, stress, length and tone."""
    return any(unicodedata.category(character) in {"Ll", "Lo"} for character in ipa)


def for_voice(
    language_code: str,
    espeak_voice: str,
    id_map: Mapping[str, Sequence[int]],
    choice: Literal["auto", "builtin", "espeak"] = "auto",
) -> Phonemizer:
    """The phonemizer for a voice of this language (`en_US`, `de_DE`), which names an espeak-ng voice (`en-us`, `de`).

    `builtin` reads English only and runs no other program. `espeak` asks the espeak-ng program. `auto` takes the
    first for English, the second for everything else.

    Raises:
        MissingExtra: the espeak-ng program is needed and not installed.
        ConfigError: `builtin` for a language or for a voice that it cannot serve.
    """
    is_english = language_code.replace("-", "_").split("_")[0].lower() == "en"
    can_be_builtin = is_english and id_map.keys() >= SYMBOLS
    if choice == "builtin" and not can_be_builtin:
        reason = "the voice has no ids for its phonemes" if is_english else "it reads English only"
        raise ConfigError(f'the built-in phonemizer cannot speak {language_code}: {reason}; use "espeak" or "auto"')
    if choice != "espeak" and can_be_builtin:
        return EnglishPhonemizer()
    program = find_program()
    if program is None:
        raise MissingExtra(
            f"a voice for {language_code} needs the espeak-ng program, which is not installed; install it, for "
            "example with: apt-get install espeak-ng"
        )
    return EspeakPhonemizer(espeak_voice, program)
