"""Reads the `.onnx.json` beside a Piper voice. The file is untrusted: every value is checked before it is used.

What a key means: https://github.com/OHF-Voice/piper1-gpl, `src/piper/config.py`. Voices of 2023 lack some keys; those
have the defaults that Piper gives them.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NoReturn

from legato.errors import VoiceFileError

LIMIT_BYTES = 2**20
"""Largest file: a voice of 900 speakers has 25 kB."""

_MOST_SYMBOLS = 10_000
_MOST_SPEAKERS = 10_000
_MOST_IDS = 16  # of one phoneme
_LONGEST_NAME = 100
_REQUIRED_PHONEMES = ("_", "^", "$")  # pad, begin, end
_ESPEAK = ("espeak", "PhonemeType.ESPEAK")  # the second: an old exporter wrote Python's name of it
_ESPEAK_VOICE = re.compile(r"[A-Za-z][A-Za-z0-9+_-]*")  # no dot, no slash: espeak-ng opens a file of this name
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([_-][A-Za-z0-9]{1,8})*")
_REQUIRED: Final = object()


@dataclass(frozen=True, slots=True)
class VoiceConfig:
    """Facts about one Piper voice.

    Attributes:
        sample_rate: Hz.
        quality: what the publisher calls it ("medium"), or "".
        espeak_voice: name of the espeak-ng voice that gives the phonemes.
        phoneme_type: "espeak"; no other kind is read.
        phoneme_id_map: ids of each phoneme, all below `num_symbols`; has pad "_", begin "^" and end "$".
        phoneme_map: phonemes to say instead of one; empty for nearly every voice.
        num_symbols: rows of the phoneme embedding.
        num_speakers: 1 or more.
        speaker_id_map: name to id, all below `num_speakers`; may be empty.
        noise_scale: of the latent; how lively.
        length_scale: 2.0 speaks half as fast.
        noise_w: of the durations; how uneven.
        language: BCP 47.
        dataset: name of the recordings, or "".
        hop_length: samples of one latent frame, or None where the file does not say.
    """

    sample_rate: int
    quality: str
    espeak_voice: str
    phoneme_type: str
    phoneme_id_map: Mapping[str, tuple[int, ...]]
    phoneme_map: Mapping[str, tuple[str, ...]]
    num_symbols: int
    num_speakers: int
    speaker_id_map: Mapping[str, int]
    noise_scale: float
    length_scale: float
    noise_w: float
    language: str
    dataset: str
    hop_length: int | None


def parse(data: bytes) -> VoiceConfig:
    """Check and read the file.

    Raises:
        VoiceFileError: it is too large, no JSON, lacks a key, or a value is wrong. The message names the key.
    """
    root = _root(data)
    audio, espeak = root.section("audio"), root.section("espeak")
    inference, language = root.section("inference", {}), root.section("language", {})
    if root.text("phoneme_type", "espeak") not in _ESPEAK:
        _refuse("phoneme_type", 'is not "espeak", the only kind that Legato can say; take another voice')
    espeak_voice = espeak.text("voice")
    if not _ESPEAK_VOICE.fullmatch(espeak_voice):
        _refuse("espeak.voice", "is not the name of an espeak-ng voice, such as en-us")
    code = language.text("code", "") or espeak_voice.partition("+")[0]
    if not _LANGUAGE.fullmatch(code):
        _refuse("language.code" if language.text("code", "") else "espeak.voice", "is not a language, such as en_US")
    num_symbols = root.integer("num_symbols", 1, _MOST_SYMBOLS)
    num_speakers = root.integer("num_speakers", 1, _MOST_SPEAKERS)
    hops = [part.integer("hop_length", 1, 4096) for part in (root, audio) if part.value("hop_length", None) is not None]
    return VoiceConfig(
        sample_rate=audio.integer("sample_rate", 8000, 48_000),
        quality=audio.text("quality", ""),
        espeak_voice=espeak_voice,
        phoneme_type="espeak",
        phoneme_id_map=_phoneme_ids(root.section("phoneme_id_map"), num_symbols),
        phoneme_map=_phoneme_map(root.section("phoneme_map", {})),
        num_symbols=num_symbols,
        num_speakers=num_speakers,
        speaker_id_map=_speakers(root.section("speaker_id_map", {}), num_speakers),
        noise_scale=inference.number("noise_scale", 0, 5, 0.667),
        length_scale=inference.number("length_scale", 0.1, 10, 1.0),
        noise_w=inference.number("noise_w", 0, 5, 0.8),
        language=_bcp47(code),
        dataset=root.text("dataset", ""),
        hop_length=hops[0] if hops else None,
    )


class _Section:
    """One object of the file, and where it is."""

    def __init__(self, values: Mapping[str, Any], place: str = "") -> None:
        self._values = values
        self._place = place

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def place(self, key: str) -> str:
        """How a message names a key; keys come from the file too."""
        return self._place + (key if key.isidentifier() and key.isascii() else f"[{key[:20]!a}]")

    def value(self, key: str, default: object) -> Any:
        """The value, or the default; a null counts as absent."""
        value = self._values.get(key)
        if value is not None:
            return value
        if default is _REQUIRED:
            _refuse(self.place(key), "is missing")
        return default

    def section(self, key: str, default: object = _REQUIRED) -> "_Section":
        """An object."""
        value = self.value(key, default)
        if not isinstance(value, dict):
            _refuse(self.place(key), "must be an object")
        return _Section(value, f"{self.place(key)}.")

    def array(self, key: str) -> list[Any]:
        """An array of 1 to 16 things."""
        value = self._values[key]
        if not isinstance(value, list) or not 1 <= len(value) <= _MOST_IDS:
            _refuse(self.place(key), f"must be an array of 1 to {_MOST_IDS} values")
        return value

    def integer(self, key: str, low: int, high: int, default: object = _REQUIRED) -> int:
        """A whole number in [low, high]."""
        value = self.value(key, default)
        if not _is_integer(value, low, high):
            _refuse(self.place(key), f"must be a whole number from {low} to {high}")
        return int(value)

    def number(self, key: str, low: float, high: float, default: float) -> float:
        """A number in [low, high]; NaN is in no range."""
        value = self.value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            _refuse(self.place(key), f"must be a number from {low} to {high}")
        return float(value)

    def text(self, key: str, default: object = _REQUIRED) -> str:
        """One short line that is safe to print."""
        value = self.value(key, default)
        if not isinstance(value, str) or not _is_plain(value):
            _refuse(self.place(key), f"must be text of at most {_LONGEST_NAME} printable characters")
        return value


def _root(data: bytes) -> _Section:
    if len(data) > LIMIT_BYTES:
        _refuse("the file", f"has more than {LIMIT_BYTES} bytes")
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except RecursionError:
        _refuse("the file", "is nested too deep")
    except ValueError as error:  # no UTF-8, no JSON, or a number of thousands of digits
        _refuse("the file", f"is not JSON ({str(error)[:80]!a})")
    if not isinstance(values, dict):
        _refuse("the file", "must hold one object")
    return _Section(values)


def _phoneme_ids(section: _Section, num_symbols: int) -> Mapping[str, tuple[int, ...]]:
    for phoneme in _REQUIRED_PHONEMES:
        section.value(phoneme, _REQUIRED)
    found = {}
    for phoneme in section:
        ids = section.array(phoneme)
        if not all(_is_integer(number, 0, num_symbols - 1) for number in ids):
            _refuse(section.place(phoneme), f"must hold whole numbers from 0 to num_symbols - 1 ({num_symbols - 1})")
        found[phoneme] = tuple(ids)
    return MappingProxyType(found)


def _phoneme_map(section: _Section) -> Mapping[str, tuple[str, ...]]:
    found = {}
    for phoneme in section:
        others = section.array(phoneme)
        if not all(isinstance(other, str) and len(other) <= _LONGEST_NAME for other in others):
            _refuse(section.place(phoneme), "must hold phonemes")
        found[phoneme] = tuple(others)
    return MappingProxyType(found)


def _speakers(section: _Section, num_speakers: int) -> Mapping[str, int]:
    found = {}
    for name in section:
        if not _is_plain(name):
            _refuse(section.place(name), f"must be a name of at most {_LONGEST_NAME} printable characters")
        found[name] = section.integer(name, 0, num_speakers - 1)
    return MappingProxyType(found)


def _bcp47(code: str) -> str:
    """Write a language code as BCP 47 does (RFC 5646, 2.1.1): en-US, zh-Hans, es-419, en-GB-x-rp."""
    first, *rest = code.replace("_", "-").lower().split("-")
    private = False  # after a single character, such as x, all is lower case
    parts = [first]
    for part in rest:
        private = private or len(part) == 1
        match len(part):
            case 2 if not private:
                parts.append(part.upper())
            case 4 if not private:
                parts.append(part.title())
            case _:
                parts.append(part)
    return "-".join(parts)


def _is_integer(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST_NAME and text.isprintable()


def _refuse(key: str, problem: str) -> NoReturn:
    raise VoiceFileError(
        f"The voice's JSON file cannot be used, and nothing was loaded: {key} {problem}. "
        "Take the .onnx.json that was published with this voice."
    )
