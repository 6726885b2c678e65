"""Noise depends on where it is: rows are equal from any start, however they are cut, and are normal."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.models.noise import NormalNoise, PolarNoise

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


SHAPES = st.lists(st.integers(1, 7), max_size=3).map(tuple)


def normal(*shapes: tuple[int, ...], key: tuple[int, ...] = KEY) -> list[np.ndarray]:
    noise = NormalNoise(key)
    return [noise(shape) for shape in shapes]


@given(SHAPES, st.integers(0, 30), st.integers(0, 30))
@settings(deadline=None)
def test_a_longer_tensor_begins_like_a_shorter_one(channels: tuple[int, ...], steps: int, more: int) -> None:
    (short,), (long,) = normal((*channels, steps)), normal((*channels, steps + more))
    assert short.shape == (*channels, steps)
    assert short.dtype == np.float32
    assert short.flags.c_contiguous
    assert np.isfinite(long).all()
    assert np.array_equal(long[..., :steps], short)


@given(SHAPES, st.integers(0, 30), st.integers(0, 30))
@settings(deadline=None)
def test_a_tensor_depends_on_how_many_came_before_not_on_their_lengths(
    channels: tuple[int, ...], one: int, other: int
) -> None:
    after_one = normal((1, 2, one), (*channels, 9))[1]
    after_other = normal((3, other), (*channels, 9))[1]
    assert np.array_equal(after_one, after_other)


def test_what_normal_noise_depends_on() -> None:
    shape = (1, 5, 40)
    first, second = normal(shape, shape)
    assert np.array_equal(first, normal(shape)[0])
    for other in (second, normal(shape, key=(7, 1, 2**63 - 1))[0], normal(shape, key=KEY[:2])[0]):
        assert not np.array_equal(first, other)


def test_a_shape_is_only_how_the_numbers_are_laid_out() -> None:
    flat = normal((12, 9))[0]
    for shape in ((1, 12, 9), (3, 4, 9), (2, 1, 6, 9)):
        assert np.array_equal(normal(shape)[0].reshape(12, 9), flat)
    assert np.array_equal(normal((9,))[0], normal((1, 9))[0][0])


@pytest.mark.parametrize("channels", [1, 2, 3, 191, 192])
def test_normal_noise_is_standard_normal(channels: int) -> None:
    z = normal((1, channels, 200_000 // channels))[0][0].astype(np.float64)
    n = z.size
    assert abs(z.mean()) < 5 / np.sqrt(n)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / n)
    assert abs((z**3).mean()) < 5 * np.sqrt(15 / n)
    assert abs((z**4).mean() - 3) < 5 * np.sqrt(96 / n)
    assert abs((np.abs(z) < 1).mean() - 0.6826895) < 5 * 0.47 / np.sqrt(n)
    assert abs((z[:, 1:] * z[:, :-1]).mean()) < 5 / np.sqrt(n)  # neighbours in time
    # Any two channels, among them the two halves of one complex number.
    together = z[:50] @ z[:50].T / z.shape[1]
    assert np.abs(together - np.diag(np.diag(together))).max() < 6 / np.sqrt(z.shape[1])


def test_tensors_are_independent() -> None:
    several = [tensor.ravel().astype(np.float64) for tensor in normal(*[(1, 192, 500)] * 4)]
    several += [tensor.ravel().astype(np.float64) for tensor in normal((1, 192, 500), key=(8, 0, 0))]
    correlation = np.corrcoef(several) - np.eye(5)
    assert np.abs(correlation).max() < 5 / np.sqrt(192 * 500)
