"""Texts to phoneme pieces: short enough, cut where one pauses, and never a crash."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.models.hibari.phonemes import LONGEST, Phonemizer, _cut


@pytest.fixture(scope="module")
def phonemizer() -> Phonemizer:
    return Phonemizer()


def lengths(phonemizer: Phonemizer, text: str) -> list[int]:
    return [len(ids) - 2 for ids in phonemizer.pieces(text)]


def test_a_sentence_is_one_piece_between_pads(phonemizer: Phonemizer) -> None:
    (ids,) = phonemizer.pieces("Hello there.")
    assert ids.dtype == "int64"
    assert ids[0] == ids[-1] == 0
    assert 0 not in ids[1:-1]
    assert ids[1:-1].tolist() == [phonemizer._ids[character] for character in "həlˈO ðˈɛɹ."]


@pytest.mark.parametrize("text", ["", " ", "...", "?!", "—", "( )", "'", "🙂", "\ud800", "你好", "\n", "_", '""'])
def test_nothing_can_be_pronounced(phonemizer: Phonemizer, text: str) -> None:
    assert phonemizer.pieces(text) == []


def test_what_english_has_no_sound_for_is_left_out(phonemizer: Phonemizer) -> None:
    assert lengths(phonemizer, "hello 你好") == lengths(phonemizer, "hello ")


@pytest.mark.parametrize("text", ["word " * 300, "a, " * 500, "Yes! " * 400, "A" * 240, "x_" * 120])
def test_pieces_have_400_phonemes_at_most(phonemizer: Phonemizer, text: str) -> None:
    found = lengths(phonemizer, text)
    assert len(found) > 1
    assert all(0 < length <= LONGEST for length in found)
    assert min(found[:-1]) > LONGEST - 20  # and not much shorter than they may be


def test_pieces_are_cut_after_a_pause_or_a_space() -> None:
    def cuts(phonemes: str) -> list[str]:
        out = []
        while phonemes:
            at = _cut(phonemes)
            out.append(phonemes[:at])
            phonemes = phonemes[at:]
        return out

    assert cuts("a" * LONGEST) == ["a" * LONGEST]
    assert cuts("a" * (LONGEST + 1)) == ["a" * LONGEST, "a"]
    assert cuts("a" * 50 + ", " + "a" * 40 + " " + "a" * 400)[0] == "a" * 50 + ","
    assert cuts("a" * 50 + " " + "a" * 400)[0] == "a" * 50 + " "
    assert cuts("a" * (LONGEST - 1) + "," + "a")[0] == "a" * (LONGEST - 1) + ","


@pytest.mark.parametrize(
    "text",
    [
        "9" * 36,
        "9" * 37,  # the package's number reader ends at 10**36
        "9" * 240,
        "$" + "9" * 60,
        "-" + "9" * 60,
        "9" * 60 + "th",
        "9" * 60 + ".5",
        "9" * 60 + "%",
        ",".join(["999"] * 20),
        "٣" * 60,
        "１" * 60,
    ],
)
def test_long_numbers(phonemizer: Phonemizer, text: str) -> None:
    assert sum(lengths(phonemizer, text)) > 30


def test_a_long_number_is_read_digit_by_digit(phonemizer: Phonemizer) -> None:
    (ids,) = phonemizer.pieces("1" * 37)
    (one,) = phonemizer.pieces("1 1")
    assert ids[1:7].tolist() == one[1:7].tolist()


def test_a_word_of_many_parts_is_read_in_several(phonemizer: Phonemizer) -> None:
    # In one go, the package would take more than a second for it, while every other stream waits.
    assert lengths(phonemizer, "a-" * 100) == lengths(phonemizer, ("a-" * 16 + " ") * 6 + "a-" * 4)
    assert lengths(phonemizer, "state-of-the-art e.g. mother-in-law's") == lengths(
        phonemizer, "state-of-the-art e.g. mother-in-law's "
    )


@given(st.text(st.sampled_from("0123456789.,$%-/:'abcdefgXYZ £€²½٣é—()\"&+@#_ \n"), max_size=60))
@settings(deadline=None, max_examples=150)
def test_no_text_is_a_crash(phonemizer: Phonemizer, text: str) -> None:
    for ids in phonemizer.pieces(text):
        assert 3 <= len(ids) <= LONGEST + 2


def test_it_holds_no_state(phonemizer: Phonemizer) -> None:
    alone = [ids.tolist() for ids in phonemizer.pieces("Read the book. It was read.")]
    phonemizer.pieces("Something else, with 42 Zyxolutrixes!")
    assert [ids.tolist() for ids in phonemizer.pieces("Read the book. It was read.")] == alone
