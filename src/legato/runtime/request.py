"""What a caller may ask for, checked once for the library, the command line and the server."""

import re
from dataclasses import dataclass

from legato.core.engine import EngineInfo, VoiceSettings
from legato.errors import InvalidRequest, NothingToSpeak, TextTooLong, UnknownVoice

MAX_TEXT = 20_000
"""Characters of one whole text, by default: twenty minutes of speech. A text that arrives in pieces may be longer."""

DEFAULT_VOICE = "default"
_LARGEST_SEED = 2**63 - 1

# Control characters but tab and line breaks, lone surrogates, non-characters: nothing that can be read.
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class SpeechOptions:
    """How a text is to be spoken.

    Attributes:
        voice: a name from the engine's voices, alone or as `engine:name`; "default" is the first.
        speed: 2 is twice as fast; the range is the engine's.
        seed: 0 to 2**63 - 1; the same seed gives the same samples.
    """

    voice: str = DEFAULT_VOICE
    speed: float = 1.0
    seed: int = 0


def voice_settings(options: SpeechOptions, info: EngineInfo) -> VoiceSettings:
    """Check the options against an engine.

    Raises:
        InvalidRequest: speed or seed is out of range or of the wrong type.
        UnknownVoice: the engine has no such voice; the message lists those it has.
    """
    speed: object = options.speed  # callers without a type checker may send anything
    seed: object = options.seed
    # Compared before it is converted: an integer of 400 digits is no float.
    if isinstance(speed, bool) or not isinstance(speed, int | float) or not info.slowest <= speed <= info.fastest:
        raise InvalidRequest(f"speed must be a number from {info.slowest:g} to {info.fastest:g}.", param="speed")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= _LARGEST_SEED:
        raise InvalidRequest(f"seed must be a whole number from 0 to {_LARGEST_SEED}.", param="seed")
    return VoiceSettings(name=_voice_name(options.voice, info), speed=float(speed), seed=seed)


def _voice_name(voice: object, info: EngineInfo) -> str:
    names = [known.name for known in info.voices]
    if not isinstance(voice, str):
        raise InvalidRequest("voice must be the name of a voice.", param="voice")
    name = voice.removeprefix(f"{info.name}:")
    if name == DEFAULT_VOICE:
        return names[0]
    if name not in names:
        raise UnknownVoice(f"There is no voice {voice[:64]!a}. Voices: {', '.join(names)}.", param="voice")
    return name


def readable(text: object) -> str:
    """Replace each character that cannot be read by a space, so that offsets stay.

    Raises:
        InvalidRequest: it is not a string.
    """
    if not isinstance(text, str):
        raise InvalidRequest("The text must be a string.", param="input")
    return _UNREADABLE.sub(" ", text)


def check_text(text: object, limit: int = MAX_TEXT) -> str:
    """Check a whole text and return it readable.

    Raises:
        InvalidRequest: it is not a string.
        TextTooLong: it has more than `limit` characters.
        NothingToSpeak: it has no letter and no digit.
    """
    readable_text = readable(text)
    if len(readable_text) > limit:
        raise TextTooLong(
            f"The text has {len(readable_text)} characters; at most {limit} are taken at once. Send it in parts.",
            param="input",
        )
    if not readable_text.strip():
        raise NothingToSpeak("The text is empty. Send at least one word.", param="input")
    if not any(character.isalnum() for character in readable_text):
        raise NothingToSpeak("The text has no letter and no digit: there is nothing to speak.", param="input")
    return readable_text
