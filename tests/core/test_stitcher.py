"""Seams: a constant stays a constant, nothing is lost, the fade-out falls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.events import Pcm
from legato.core.stitcher import Fade, Stitcher

FADES: list[Fade] = ["linear", "hann"]


def join(stitcher: Stitcher, blocks: list[Pcm]) -> Pcm:
    return np.concatenate([*(stitcher.push(block) for block in blocks), stitcher.flush()])


def test_no_overlap_is_no_copy_and_no_delay() -> None:
    block = np.ones(5, np.float32)
    stitcher = Stitcher(0)
    assert stitcher.push(block) is block
    assert len(stitcher.flush()) == 0


@pytest.mark.parametrize("fade", FADES)
@pytest.mark.parametrize("overlap", [1, 2, 3, 7, 480, 960, 5000])
def test_gains_are_complementary_and_fade_out_falls(fade: Fade, overlap: int) -> None:
    # From a one to silence: the result is the fade-out. From silence to a one: the fade-in.
    one, zero = np.ones(2 * overlap, np.float32), np.zeros(2 * overlap, np.float32)
    fade_out = join(Stitcher(overlap, fade), [one, zero])[overlap : 2 * overlap]
    fade_in = join(Stitcher(overlap, fade), [zero, one])[overlap : 2 * overlap]
    assert fade_out.dtype == fade_in.dtype == np.float32
    assert np.all(fade_in + fade_out == np.float32(1))
    assert np.all(np.diff(fade_out) < 0) or fade == "hann"
    assert np.all(np.diff(fade_out) <= 0)
    assert np.array_equal(fade_out, fade_in[::-1])
    assert np.all((fade_out >= 0) & (fade_out <= 1))


def test_pinned_gains() -> None:
    four = [np.ones(4, np.float32), np.zeros(4, np.float32)]
    assert join(Stitcher(2), four).tolist() == [1, 1, 0.75, 0.25, 0, 0]
    hann = join(Stitcher(2, "hann"), four)
    np.testing.assert_allclose(hann, [1, 1, 0.8535534, 0.1464466, 0, 0], atol=1e-7)


@given(st.integers(0, 20), st.lists(st.integers(0, 70), max_size=6), st.sampled_from(FADES))
@settings(deadline=None)
def test_a_constant_stays_and_no_sample_is_lost(overlap: int, extra: list[int], fade: Fade) -> None:
    blocks = [np.full(overlap + n, 0.7, np.float32) for n in extra]
    filled = [block for block in blocks if len(block)]
    stitcher = Stitcher(overlap, fade)
    for _ in range(2):  # again, as the next segment
        out = join(stitcher, blocks)
        assert out.dtype == np.float32
        assert len(out) == sum(map(len, filled)) - overlap * max(0, len(filled) - 1)
        np.testing.assert_allclose(out, 0.7, rtol=2e-7)
        assert np.all(join(Stitcher(overlap, fade), [np.ones_like(block) for block in blocks]) == 1)


@given(st.integers(1, 9), st.lists(st.integers(0, 30), min_size=1, max_size=6))
@settings(deadline=None)
def test_pieces_of_one_signal_give_the_signal(overlap: int, extra: list[int]) -> None:
    lengths = [overlap + n for n in extra]
    signal = np.sin(np.arange(sum(lengths), dtype=np.float32))
    blocks, at = [], 0
    for length in lengths:
        blocks.append(signal[at : at + length])
        at += length - overlap
    before = signal.copy()
    out = join(Stitcher(overlap), blocks)
    np.testing.assert_allclose(out, signal[: len(out)], atol=3e-7)
    assert len(out) == at + overlap
    assert np.array_equal(signal, before)  # the engine's blocks are left alone


def test_empty_blocks_change_nothing() -> None:
    stitcher, empty = Stitcher(2), np.zeros(0, np.float32)
    block = np.arange(6, dtype=np.float32)
    assert len(stitcher.push(empty)) == 0
    assert stitcher.push(block).tolist() == [0, 1, 2, 3]
    assert len(stitcher.push(empty)) == 0
    assert stitcher.flush().tolist() == [4, 5]
    assert len(stitcher.flush()) == 0


def test_callers_mistakes() -> None:
    with pytest.raises(ValueError, match="negative"):
        Stitcher(-1)
    with pytest.raises(ValueError, match="hann"):
        Stitcher(1, "cosine")
    with pytest.raises(ValueError, match="3 samples cannot overlap"):
        Stitcher(4).push(np.zeros(3, np.float32))
