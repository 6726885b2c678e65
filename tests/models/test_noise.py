"""Noise depends on where it is: rows are equal from any start, however they are cut, and are normal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.models.noise import PolarNoise

KEY = (7, 0, 2**63 - 1)


def rows(columns: int, cuts: list[int], *, start: int = 0, key: tuple[int, ...] = KEY) -> np.ndarray:
    noise = PolarNoise(key, columns, start=start)
    return np.concatenate([np.zeros((2, 0, columns), np.float32), *(np.stack(noise.take(n)) for n in cuts)], axis=1)


@given(st.integers(1, 9), st.integers(0, 20), st.lists(st.integers(0, 7), max_size=6))
@settings(deadline=None)
def test_a_row_depends_on_its_position_only(columns: int, start: int, cuts: list[int]) -> None:
    whole = rows(columns, [start + sum(cuts)])
    assert np.array_equal(rows(columns, cuts, start=start), whole[:, start:])


def test_shapes_and_types() -> None:
    magnitude, angle = PolarNoise(KEY, 601).take(3)
    assert magnitude.shape == angle.shape == (3, 601)
    assert magnitude.dtype == angle.dtype == np.float32
    assert magnitude.min() >= 0
    assert np.abs(angle).max() <= np.float32(np.pi)


def test_keys_give_independent_noise() -> None:
    one, other = (rows(601, [40], key=key)[0].ravel() for key in ((1, 0, 0), (1, 0, 1)))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert np.array_equal(one, rows(601, [40], key=(1, 0, 0))[0].ravel())


def test_it_is_standard_normal() -> None:
    magnitude, angle = (part.ravel().astype(np.float64) for part in rows(601, [800]))
    z = magnitude * np.exp(1j * angle)
    n = len(z)
    for part in (z.real, z.imag):
        assert abs(part.mean()) < 5 / np.sqrt(n)
        assert abs(part.var() - 1) < 5 * np.sqrt(2 / n)
        assert abs((part**3).mean()) < 5 * np.sqrt(15 / n)
        assert abs((part**4).mean() - 3) < 5 * np.sqrt(96 / n)
        assert abs((np.abs(part) < 1).mean() - 0.6826895) < 5 * 0.47 / np.sqrt(n)
    assert abs((z.real * z.imag).mean()) < 5 / np.sqrt(n)
    white = np.abs(np.fft.fft(z)) ** 2 / n  # no colour: neighbours are independent
    assert abs(white[: n // 2].mean() - white[n // 2 :].mean()) < 0.05


class _Words:
    """Stands for the bit generator: gives the words that it was told to."""

    def __init__(self, words: list[int]) -> None:
        self._words = np.array(words, np.uint64)

    def random_raw(self, size: int) -> np.ndarray:
        return self._words[:size]


@pytest.mark.parametrize("low", [0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1])
@pytest.mark.parametrize("high", [0, 2**31 - 1, 2**31, 2**32 - 1])
def test_the_extreme_words_are_finite(low: int, high: int) -> None:
    noise = PolarNoise(KEY, 1)
    noise._bits = _Words([high << 32 | low])
    magnitude, angle = noise.take(1)
    assert 0 <= magnitude[0, 0] <= 7
    assert abs(angle[0, 0]) <= np.float32(np.pi)
