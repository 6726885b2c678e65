"""The vocoder equals the package's own, and gives the same bits however the frames come."""

from itertools import pairwise

import numpy as np
import pytest
from hibari import dsp
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.events import Pcm
from legato.models.hibari.graphs import BINS
from legato.models.hibari.vocoder import HOP, LAG, Vocoder
from legato.models.noise import PolarNoise

KEY = (3, 1, 4)


def network(frames: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Something like what the decoder gives: five parts of a spectrum, and a pitch that starts and stops."""
    random = np.random.default_rng((seed, frames))
    levels = np.repeat(np.array([-1, 0, -3, -4, 0], np.float32), BINS)
    spectra = (random.standard_normal((frames, 5 * BINS)) + levels).astype(np.float32)
    f0 = random.choice([0, 0, 39, 41, 90, 220, 500, 900], frames).astype(np.float32)
    return spectra, f0


def stream(spectra: np.ndarray, f0: np.ndarray, cuts: list[int], ahead: int = 3) -> list[Pcm]:
    """Push the frames in pieces; the pitch is `ahead` frames ahead, as the network gives it."""
    vocoder, frames = Vocoder(KEY), len(spectra)
    out, edges = [], [0, *cuts, frames]
    told = 0
    for index, (start, stop) in enumerate(pairwise(edges)):
        final = index == len(cuts)
        known = frames if final else min(frames, stop + ahead)
        out.append(vocoder.push(spectra[start:stop], f0[told:known], final=final))
        told = known
    return out


class _SameNoise:
    """The package asks a numpy generator for its noise; this one answers with ours."""

    def standard_normal(self, shape: tuple[int, int], dtype: type) -> np.ndarray:
        assert (shape[0], dtype) == (BINS, np.float32)
        magnitude, angle = PolarNoise(KEY, BINS).take(shape[1] // 2)
        z = (magnitude * np.exp(1j * angle)).astype(np.complex64)
        return np.ascontiguousarray(z.T).view(np.float32)


@pytest.mark.parametrize("frames", [4, 5, 40, 200])
def test_equals_the_package(frames: int) -> None:
    spectra, f0 = network(frames)
    expected = dsp.synth(*(np.ascontiguousarray(part.T) for part in np.split(spectra, 5, axis=1)), f0, _SameNoise())
    (ours,) = stream(spectra, f0, [])
    assert ours.dtype == np.float32
    assert len(ours) == len(expected) == frames * HOP
    np.testing.assert_allclose(ours, expected, atol=1e-5 * max(1, np.abs(expected).max()), rtol=0)


@given(st.integers(4, 60), st.sets(st.integers(1, 60), max_size=6), st.integers(3, 30))
@settings(deadline=None, max_examples=40)
def test_the_same_bits_for_any_cut(frames: int, cuts: set[int], ahead: int) -> None:
    spectra, f0 = network(frames)
    (whole,) = stream(spectra, f0, [])
    inside = sorted(cut for cut in cuts if cut <= frames - 2)
    assert np.array_equal(np.concatenate(stream(spectra, f0, inside, ahead)), whole)


def test_every_frame_by_itself() -> None:
    spectra, f0 = network(30)
    (whole,) = stream(spectra, f0, [])
    pieces = stream(spectra, f0, list(range(1, 29)))
    assert np.array_equal(np.concatenate(pieces), whole)
    assert len(pieces[-1]) == 2 * HOP + LAG
    assert [len(piece) for piece in pieces[:-1]] == [0, 0] + [HOP] * 26


def test_the_key_is_the_seed() -> None:
    spectra, f0 = network(12)
    one, same, other = (Vocoder(key).push(spectra, f0, final=True) for key in ((1, 2), (1, 2), (1, 3)))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_loud_spectra_stay_finite() -> None:
    spectra, f0 = network(8)
    spectra[:, :] = 100  # magnitudes are cut as in training
    assert np.isfinite(Vocoder(KEY).push(spectra, f0, final=True)).all()


def test_what_it_is_given_is_left_alone() -> None:
    spectra, f0 = network(20)
    copies = spectra.copy(), f0.copy()
    stream(spectra, f0, [9])
    assert np.array_equal(spectra, copies[0])
    assert np.array_equal(f0, copies[1])
