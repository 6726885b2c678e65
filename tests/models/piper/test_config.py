"""Piper's JSON file: what it says, what older ones leave out, and everything that is refused."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.errors import VoiceFileError
from legato.models.piper import config
from legato.models.piper.config import VoiceConfig, parse

CONFIG: dict[str, Any] = {
    "audio": {"sample_rate": 22050, "quality": "medium", "hop_length": 256},
    "espeak": {"voice": "en-us"},
    "inference": {"noise_scale": 0.5, "length_scale": 1, "noise_w": 0.25},
    "phoneme_type": "espeak",
    "phoneme_map": {"ʤ": ["d", "ʒ"]},
    "phoneme_id_map": {"_": [0], "^": [1], "$": [2], " ": [3], "ə": [4, 5], "\u0327": [6]},
    "num_symbols": 8,
    "num_speakers": 2,
    "speaker_id_map": {"joe": 0, "Łucja": 1},
    "piper_version": "1.0.0",
    "language": {"code": "en_US", "family": "en"},
    "dataset": "joe",
}


def encoded(values: object) -> bytes:
    return json.dumps(values).encode()


def changed(place: str, value: object) -> bytes:
    """CONFIG with one value changed, or without it where the value is `...`."""
    values = copy.deepcopy(CONFIG)
    *parents, key = place.split(".")
    part = values
    for parent in parents:
        part = part[parent]
    if value is ...:
        del part[key]
    else:
        part[key] = value
    return encoded(values)


def test_what_it_says() -> None:
    assert parse(encoded(CONFIG)) == VoiceConfig(
        sample_rate=22050,
        quality="medium",
        espeak_voice="en-us",
        phoneme_type="espeak",
        phoneme_id_map={"_": (0,), "^": (1,), "$": (2,), " ": (3,), "ə": (4, 5), "\u0327": (6,)},
        phoneme_map={"ʤ": ("d", "ʒ")},
        num_symbols=8,
        num_speakers=2,
        speaker_id_map={"joe": 0, "Łucja": 1},
        noise_scale=0.5,
        length_scale=1.0,
        noise_w=0.25,
        language="en-US",
        dataset="joe",
        hop_length=256,
    )


def test_nothing_of_it_can_be_changed() -> None:
    found: Any = parse(encoded(CONFIG))
    with pytest.raises(AttributeError):
        found.sample_rate = 1
    for mapping in (found.phoneme_id_map, found.phoneme_map, found.speaker_id_map):
        with pytest.raises(TypeError):
            mapping["_"] = (9,)


def test_an_older_voice_lacks_keys() -> None:
    ids = {"_": [0], "^": [1], "$": [2]}
    old = {
        "audio": {"sample_rate": 16000},
        "espeak": {"voice": "en-gb-x-rp+f3"},
        "phoneme_id_map": ids,
        "num_symbols": 130,
        "num_speakers": 1,
    }
    found = parse(b"\xef\xbb\xbf" + encoded(old))
    assert (found.quality, found.dataset, found.hop_length) == ("", "", None)
    assert (found.noise_scale, found.length_scale, found.noise_w) == (0.667, 1.0, 0.8)
    assert (found.phoneme_type, found.language) == ("espeak", "en-GB-x-rp")
    assert (dict(found.phoneme_map), dict(found.speaker_id_map)) == ({}, {})


def test_a_null_counts_as_absent() -> None:
    assert parse(changed("dataset", None)).dataset == ""
    with pytest.raises(VoiceFileError, match="num_symbols is missing"):
        parse(changed("num_symbols", None))


def test_the_hop_may_stand_at_the_top() -> None:
    assert parse(changed("hop_length", 300)).hop_length == 300


def test_the_spelling_of_an_old_exporter() -> None:
    assert parse(changed("phoneme_type", "PhonemeType.ESPEAK")).phoneme_type == "espeak"


@pytest.mark.parametrize(
    ("code", "bcp47"),
    [("en_US", "en-US"), ("zh_hans_cn", "zh-Hans-CN"), ("es_419", "es-419"), ("CMN", "cmn"), ("en-x-US", "en-x-us")],
)
def test_languages(code: str, bcp47: str) -> None:
    assert parse(changed("language.code", code)).language == bcp47


WRONG = [
    ("audio", ..., "audio is missing"),
    ("audio", [], "audio must be an object"),
    ("audio.sample_rate", ..., r"audio\.sample_rate is missing"),
    ("audio.sample_rate", "22050", r"audio\.sample_rate must be a whole number from 8000 to 48000"),
    ("audio.sample_rate", 22050.0, r"audio\.sample_rate"),
    ("audio.sample_rate", True, r"audio\.sample_rate"),
    ("audio.sample_rate", 7999, r"audio\.sample_rate"),
    ("audio.sample_rate", 48001, r"audio\.sample_rate"),
    ("audio.quality", 3, r"audio\.quality must be text"),
    ("audio.quality", "\x1b[2J", r"audio\.quality must be text"),
    ("audio.hop_length", 0, r"audio\.hop_length"),
    ("hop_length", 10**6, r": hop_length"),
    ("espeak", ..., "espeak is missing"),
    ("espeak.voice", ..., r"espeak\.voice is missing"),
    ("espeak.voice", "../../etc/passwd", r"espeak\.voice is not the name"),
    ("espeak.voice", "", r"espeak\.voice is not the name"),
    ("espeak.voice", "x" * 101, r"espeak\.voice must be text of at most 100"),
    ("inference", "fast", "inference must be an object"),
    ("inference.noise_scale", float("nan"), r"inference\.noise_scale must be a number from 0 to 5"),
    ("inference.noise_scale", -0.1, r"inference\.noise_scale"),
    ("inference.length_scale", float("inf"), r"inference\.length_scale must be a number from 0\.1 to 10"),
    ("inference.length_scale", 0, r"inference\.length_scale"),
    ("inference.length_scale", 10**400, r"inference\.length_scale"),
    ("inference.noise_w", "0.8", r"inference\.noise_w"),
    ("inference.noise_w", False, r"inference\.noise_w"),
    ("phoneme_type", "text", 'phoneme_type is not "espeak"'),
    ("phoneme_type", 1, "phoneme_type must be text"),
    ("phoneme_id_map", ..., "phoneme_id_map is missing"),
    ("phoneme_id_map", [], "phoneme_id_map must be an object"),
    ("phoneme_id_map._", ..., r"phoneme_id_map\._ is missing"),
    ("phoneme_id_map.^", ..., r"phoneme_id_map\.\['\^'\] is missing"),
    ("phoneme_id_map.$", ..., r"phoneme_id_map\.\['\$'\] is missing"),
    ("phoneme_id_map.a", 3, r"phoneme_id_map\.a must be an array of 1 to 16"),
    ("phoneme_id_map.a", None, r"phoneme_id_map\.a must be an array"),
    ("phoneme_id_map.a", [], r"phoneme_id_map\.a must be an array"),
    ("phoneme_id_map.a", [1] * 17, r"phoneme_id_map\.a must be an array"),
    ("phoneme_id_map.a", [8], r"phoneme_id_map\.a must hold whole numbers from 0 to num_symbols - 1 \(7\)"),
    ("phoneme_id_map.a", [-1], r"phoneme_id_map\.a"),
    ("phoneme_id_map.a", [True], r"phoneme_id_map\.a"),
    ("phoneme_id_map.\x1b", ["1"], r"phoneme_id_map\.\['\\x1b'\]"),
    ("phoneme_map.a", "b", r"phoneme_map\.a must be an array"),
    ("phoneme_map.a", [1], r"phoneme_map\.a must hold phonemes"),
    ("phoneme_map.a", ["b" * 101], r"phoneme_map\.a must hold phonemes"),
    ("num_symbols", ..., "num_symbols is missing"),
    ("num_symbols", 0, "num_symbols must be a whole number from 1 to 10000"),
    ("num_symbols", 10**9, "num_symbols"),
    ("num_speakers", ..., "num_speakers is missing"),
    ("num_speakers", 0, "num_speakers must be"),
    ("num_speakers", 1, r"speaker_id_map\.\['\\u0141ucja'\] must be a whole number from 0 to 0"),
    ("speaker_id_map", ["joe"], "speaker_id_map must be an object"),
    ("speaker_id_map.joe", 2, r"speaker_id_map\.joe"),
    ("speaker_id_map.\x1b[31m", 0, r"speaker_id_map\.\['\\x1b\[31m'\] must be a name"),
    ("language", "en", "language must be an object"),
    ("language.code", 7, r"language\.code must be text"),
    ("language.code", "english language", r"language\.code is not a language"),
    ("dataset", ["joe"], "dataset must be text"),
    ("dataset", "two\nlines", "dataset must be text"),
]


@pytest.mark.parametrize(("place", "value", "message"), WRONG)
def test_a_wrong_value_names_its_key(place: str, value: object, message: str) -> None:
    with pytest.raises(VoiceFileError, match=message) as caught:
        parse(changed(place, value))
    assert caught.value.message.isprintable()
    assert "nothing was loaded" in caught.value.message
    assert "Take the .onnx.json that was published" in caught.value.message


def test_a_wrong_espeak_voice_names_no_language() -> None:
    values = copy.deepcopy(CONFIG) | {"language": {}, "espeak": {"voice": "English"}}
    with pytest.raises(VoiceFileError, match=r"espeak\.voice is not a language"):
        parse(encoded(values))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not JSON"),
        (b"\xff\xfe{", "is not JSON"),
        (encoded(CONFIG)[:-1], "is not JSON"),
        (encoded(CONFIG) + b"\0", "is not JSON"),
        (b"[1]", "must hold one object"),
        (b"null", "must hold one object"),
        (b'{"num_symbols": ' + b"9" * 5000 + b"}", "is not JSON"),
        (b"[" * 200_000, "is nested too deep"),
        (b" " * (config.LIMIT_BYTES + 1), "has more than 1048576 bytes"),
    ],
)
def test_no_such_file_at_all(data: bytes, message: str) -> None:
    with pytest.raises(VoiceFileError, match=f"the file {message}"):
        parse(data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([*CONFIG, "audio.sample_rate", "phoneme_id_map._", "phoneme_id_map.a", "language.code"]), JSON)
def test_any_value_is_read_or_refused(place: str, value: object) -> None:
    try:
        found = parse(changed(place, value))
    except VoiceFileError:
        return
    assert 8000 <= found.sample_rate <= 48_000
    assert all(0 <= number < found.num_symbols for ids in found.phoneme_id_map.values() for number in ids)
