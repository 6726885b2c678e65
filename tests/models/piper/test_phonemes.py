"""IPA to ids and pieces: nothing is lost, nothing is too long, and the right reader is chosen."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.errors import ConfigError, MissingExtra, VoiceFileError
from legato.models.piper import phonemes
from legato.models.piper.english import SYMBOLS, EnglishPhonemizer
from legato.models.piper.phonemes import encode, for_voice, pieces, speakable

MAP = {"_": [0], "^": [1], "$": [2], "h": [20], "ə": [59, 60], "c": [16], "\u0327": [140], " ": [3]}
ENGLISH = {symbol: [at] for at, symbol in enumerate(["_", "^", "$", *sorted(SYMBOLS)])}
IPA = st.text(st.sampled_from("abəɹʃˈˌː\u0329\u0303 ,.?ç1"), max_size=80)


def test_ids_stand_between_pads() -> None:
    ids = encode("hə", MAP)
    assert ids.dtype == "int64"
    assert ids.tolist() == [1, 0, 20, 0, 59, 60, 0, 2]


def test_nothing_is_start_and_end() -> None:
    assert encode("", MAP).tolist() == [1, 0, 2]


def test_characters_are_decomposed() -> None:
    assert encode("ç", MAP).tolist() == [1, 0, 16, 0, 140, 0, 2]


def test_what_the_voice_does_not_know_is_left_out() -> None:
    assert encode("h🙂^x_$h", MAP).tolist() == [1, 0, 20, 0, 20, 0, 2]


@pytest.mark.parametrize("mark", ["^", "_", "$"])
def test_a_map_without_marks_is_no_piper_voice(mark: str) -> None:
    with pytest.raises(VoiceFileError, match="phoneme_id_map"):
        encode("h", {key: ids for key, ids in MAP.items() if key != mark})


@pytest.mark.parametrize(
    ("ipa", "limit", "expected"),
    [
        ("", 5, []),
        ("   ", 5, []),
        ("abc", 3, ["abc"]),
        ("ab cd", 5, ["ab cd"]),
        ("ab cd", 4, ["ab", "cd"]),
        ("ab, cd ef", 8, ["ab,", "cd ef"]),  # a pause before the last space
        ("ab. cd, ef gh", 10, ["ab. cd,", "ef gh"]),  # the last pause
        ("ab cd", 2, ["ab", "cd"]),  # the space need not fit
        ("abcd", 2, ["ab", "cd"]),  # a word alone is too long
        ("a.b cd", 4, ["a.b", "cd"]),  # no pause without a space
        ("abː cd", 2, ["a", "bː", "cd"]),
        ("aˈb", 2, ["a", "ˈb"]),
        ("ab.", 2, ["a", "b."]),
        ("ˈa", 1, ["ˈ", "a"]),  # nowhere to cut
        ("aːːː", 2, ["aː", "ːː"]),
    ],
)
def test_pieces(ipa: str, limit: int, expected: list[str]) -> None:
    assert pieces(ipa, limit) == expected


def test_a_limit_is_positive() -> None:
    with pytest.raises(ValueError, match="1 or more"):
        pieces("a", 0)


@given(IPA, st.integers(1, 30))
def test_pieces_lose_only_space_and_hold_the_limit(ipa: str, limit: int) -> None:
    found = pieces(ipa, limit)
    decomposed = unicodedata.normalize("NFD", ipa)
    assert "".join("".join(found).split()) == "".join(decomposed.split())
    assert all(0 < len(piece) <= limit and piece == piece.strip() for piece in found)


@given(IPA, st.integers(1, 30))
def test_only_a_word_that_is_too_long_is_cut(ipa: str, limit: int) -> None:
    words = unicodedata.normalize("NFD", ipa).split()
    if all(len(word) <= limit for word in words):
        assert [word for piece in pieces(ipa, limit) for word in piece.split()] == words


@pytest.mark.parametrize(("ipa", "expected"), [("", False), (" .,!?;:ˈˌː", False), ("\u0303 1", False), ("ˈa", True)])
def test_speakable(ipa: str, expected: bool) -> None:
    assert speakable(ipa) is expected


@pytest.mark.parametrize("language", ["en_US", "en-GB", "en", "EN_us"])
@pytest.mark.parametrize("choice", ["auto", "builtin"])
def test_english_needs_no_program(language: str, choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phonemes, "find_program", lambda: None)
    assert isinstance(for_voice(language, "en-us", ENGLISH, choice), EnglishPhonemizer)  # type: ignore[arg-type]


@pytest.mark.parametrize(("language", "choice"), [("de_DE", "auto"), ("en_US", "espeak"), ("enq", "auto")])
def test_without_the_program(language: str, choice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phonemes, "find_program", lambda: None)
    with pytest.raises(MissingExtra, match=f"{language} .*apt-get install espeak-ng"):
        for_voice(language, "de", ENGLISH, choice)  # type: ignore[arg-type]


def test_the_program_reads_what_the_built_in_one_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phonemes, "find_program", lambda: "/program")
    monkeypatch.setattr(phonemes, "EspeakPhonemizer", lambda voice, program: (voice, program))
    assert for_voice("de_DE", "de", ENGLISH) == ("de", "/program")
    assert for_voice("en_US", "en-us", ENGLISH, "espeak") == ("en-us", "/program")
    assert for_voice("en_US", "en-us", MAP) == ("en-us", "/program")  # a voice with other phonemes


def test_built_in_is_for_english_voices_only() -> None:
    with pytest.raises(ConfigError, match="de_DE: it reads English only"):
        for_voice("de_DE", "de", ENGLISH, "builtin")
    with pytest.raises(ConfigError, match="en_US: the voice has no ids"):
        for_voice("en_US", "en-us", MAP, "builtin")
