"""The gate itself is tested: spellings that mean the same are equal, and bad speech is called bad."""

import numpy as np
import pytest

from tests.quality.resample import resample
from tests.quality.score import read_sentences, score
from tests.quality.words import words


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("At 3:30 p.m.", "at three thirty pm"),
        ("at 3.30", "at three thirty"),
        ("8:05", "eight oh five"),
        ("$19.50", "nineteen dollars and fifty cents"),
        ("$1 and 15%", "one dollar and fifteen percent"),
        ("in 1987", "in nineteen eighty seven"),
        ("in 1905 or 2004", "in nineteen oh five or two thousand four"),
        ("in 1900", "in nineteen hundred"),
        ("14 March 1987", "the fourteenth of March, nineteen eighty-seven"),
        ("December 5th", "the fifth of december"),
        ("May 21", "May 21st"),
        ("2,350,012", "two million three hundred fifty thousand twelve"),
        ("two hundred and forty", "240"),
        ("3.25", "three point two five"),
        ("the 20th, the 12th", "the twentieth, the twelfth"),
        ("Dr. Miller, don't!", "doctor miller dont"),
        ("well-known", "Well known."),
        ("", "..."),
    ],
)
def test_words_gives_one_form_to_what_sounds_alike(written: str, spoken: str) -> None:
    assert words(written) == words(spoken)


def test_words_keeps_what_differs() -> None:
    assert words("3:30") != words("3:13")
    assert words("I can") != words("I can't")


def test_sentences_expect_what_they_say() -> None:
    sentences = read_sentences()
    assert len(sentences) == 20
    for sentence in sentences:
        assert sentence.expected == tuple(words(sentence.text))


@pytest.mark.parametrize("rate", [22_050, 24_000, 48_000])
@pytest.mark.parametrize("hz", [50.0, 440.0, 7_000.0])
def test_resample_keeps_a_tone_in_time_and_size(rate: int, hz: float) -> None:
    seconds = 0.5
    tone = np.sin(2 * np.pi * hz * np.arange(int(seconds * rate)) / rate).astype(np.float32)
    got = resample(tone, rate, 16_000)
    assert len(got) == 8_000
    want = np.sin(2 * np.pi * hz * np.arange(8_000) / 16_000)
    np.testing.assert_allclose(got[200:-200], want[200:-200], atol=1e-3)  # the ends lean on the silence outside


def test_resample_removes_what_would_fold() -> None:
    tone = np.sin(2 * np.pi * 9_000 * np.arange(24_000) / 24_000).astype(np.float32)
    assert np.abs(resample(tone, 24_000, 16_000)[200:-200]).max() < 1e-3


@pytest.mark.quality
@pytest.mark.filterwarnings("default")
def test_judges_call_noise_bad() -> None:
    noise = np.random.default_rng(0)
    result = score(lambda text: (0.1 * noise.standard_normal(48_000)).astype(np.float32), 24_000, read_sentences()[:3])
    assert result.wer >= 0.9
    assert result.ovrl < 2.0
