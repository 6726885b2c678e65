"""What a caller may ask for: every wrong value is refused with a reason, and nothing else is."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.core.engine import EngineInfo, VoiceInfo, VoiceSettings
from legato.errors import InvalidRequest, LegatoError, NothingToSpeak, TextTooLong, UnknownVoice
from legato.runtime.request import MAX_TEXT, SpeechOptions, check_text, readable, voice_settings

INFO = EngineInfo("hibari", 24_000, (VoiceInfo("heart", "en-US"), VoiceInfo("bella", "en-US")))


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", "\u3000\u00a0", "\x00", "\ufeff", "\ud800"])
def test_empty(text: str) -> None:
    with pytest.raises(NothingToSpeak, match="empty") as caught:
        check_text(text)
    assert (caught.value.code, caught.value.param, caught.value.http_status) == ("nothing_to_speak", "input", 400)


@pytest.mark.parametrize("text", ["...", "?!", "—", "🙂", "👩‍👩‍👧‍👦 🎉", "***", "()", "\x07!", "。。。", "$", "€ %"])
def test_no_letter_and_no_digit(text: str) -> None:
    with pytest.raises(NothingToSpeak, match="no letter and no digit"):
        check_text(text)


@pytest.mark.parametrize("text", ["a", "7", "你好", "１２３", "é", " x ", "**b**", "🙂 ok", "a" * MAX_TEXT])
def test_good_texts_stay_as_they_are(text: str) -> None:
    assert check_text(text) == text


def test_too_long() -> None:
    with pytest.raises(TextTooLong, match="100000 characters; at most 20000") as caught:
        check_text("x" * 100_000)
    assert (caught.value.code, caught.value.http_status) == ("text_too_long", 413)
    with pytest.raises(TextTooLong):
        check_text("x" * (MAX_TEXT + 1))
    with pytest.raises(TextTooLong, match="at most 3"):
        check_text("four", 3)


@pytest.mark.parametrize("text", [None, 1, 1.5, b"bytes", ["list"], {"a": 1}, True, object()])
def test_not_a_string(text: object) -> None:
    for check in (check_text, readable):
        with pytest.raises(InvalidRequest, match="must be a string"):
            check(text)


@pytest.mark.parametrize(
    "character", ["\x00", "\x07", "\x0b", "\x0c", "\x1b", "\x7f", "\x9f", "\ud83d", "\ufeff", "\uffff"]
)
def test_an_unreadable_character_becomes_a_space(character: str) -> None:
    assert check_text(f"good{character}text") == "good text"


@pytest.mark.parametrize("character", ["\t", "\n", "\r", " ", "\u00a0", "\u2028", "é", "🙂", "你", "\u200d"])
def test_a_readable_one_stays(character: str) -> None:
    assert check_text(f"good{character}text") == f"good{character}text"


@given(st.text())
def test_offsets_stay(text: str) -> None:
    out = readable(text)
    assert len(out) == len(text)
    out.encode()  # no surrogate is left
    assert all(a == b or b == " " for a, b in zip(text, out, strict=True))


@pytest.mark.parametrize(
    "speed",
    [0, 9, -1, 0.2499, 4.001, math.nan, math.inf, -math.inf, True, False, "1", None, [1], 1j, 10**400, -(10**400)],
)
def test_bad_speed(speed: object) -> None:
    with pytest.raises(InvalidRequest, match=r"speed must be a number from 0\.25 to 4\.") as caught:
        voice_settings(SpeechOptions(speed=speed), INFO)
    assert caught.value.param == "speed"


@pytest.mark.parametrize("speed", [0.25, 1, 1.5, 4, 4.0, np.float64(2)])
def test_good_speed(speed: float) -> None:
    settings = voice_settings(SpeechOptions(speed=speed), INFO)
    assert settings == VoiceSettings("heart", float(speed), 0)
    assert type(settings.speed) is float


def test_the_range_of_speeds_is_the_engines() -> None:
    slow = EngineInfo("slow", 24_000, (VoiceInfo("heart", "en-US"),), slowest=0.5, fastest=1.0)
    assert voice_settings(SpeechOptions(speed=1.0), slow).speed == 1.0
    for speed in (0.4, 1.1):
        with pytest.raises(InvalidRequest, match=r"from 0\.5 to 1\."):
            voice_settings(SpeechOptions(speed=speed), slow)


@pytest.mark.parametrize("seed", [-1, 1.0, 0.5, 2**63, 10**400, "1", None, True, math.nan])
def test_bad_seed(seed: object) -> None:
    with pytest.raises(InvalidRequest, match="seed must be a whole number") as caught:
        voice_settings(SpeechOptions(seed=seed), INFO)
    assert caught.value.param == "seed"


def test_good_seeds() -> None:
    for seed in (0, 1, 2**63 - 1):
        assert voice_settings(SpeechOptions(seed=seed), INFO).seed == seed


@pytest.mark.parametrize(
    ("voice", "name"),
    [
        ("default", "heart"),
        ("heart", "heart"),
        ("bella", "bella"),
        ("hibari:bella", "bella"),
        ("hibari:default", "heart"),
    ],
)
def test_voices(voice: str, name: str) -> None:
    assert voice_settings(SpeechOptions(voice=voice), INFO).name == name


@pytest.mark.parametrize(
    "voice", ["", "nobody", "Heart", "heart ", "piper:heart", "hibari:", "hibari:hibari:heart", "\x00", "\ud800"]
)
def test_unknown_voices(voice: str) -> None:
    with pytest.raises(UnknownVoice, match="Voices: heart, bella") as caught:
        voice_settings(SpeechOptions(voice=voice), INFO)
    assert (caught.value.param, caught.value.code) == ("voice", "unknown_voice")
    assert caught.value.message.isascii()


def test_a_long_name_is_not_repeated_in_full() -> None:
    with pytest.raises(UnknownVoice) as caught:
        voice_settings(SpeechOptions(voice="x" * 100_000), INFO)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("voice", [None, 1, ["heart"], b"heart"])
def test_a_voice_is_a_string(voice: object) -> None:
    with pytest.raises(InvalidRequest, match="name of a voice"):
        voice_settings(SpeechOptions(voice=voice), INFO)


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())))
def test_whatever_is_asked_the_answer_is_settings_or_a_legato_error(value: object) -> None:
    for options in (SpeechOptions(voice=value), SpeechOptions(speed=value), SpeechOptions(seed=value)):
        try:
            assert isinstance(voice_settings(options, INFO), VoiceSettings)
        except LegatoError as error:
            assert error.http_status == 400  # noqa: PT017 - either is right
