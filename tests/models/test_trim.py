"""Trimming while streaming equals trimming the whole: head and tail exact, the inside untouched."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.events import NO_AUDIO, Pcm
from legato.models.trim import SilenceTrimmer

LIMIT = 0.1
samples = st.lists(st.sampled_from([0.0, 0.05, -0.1, 0.1, 0.11, -0.5, 1.0]), max_size=60)


def oracle(pcm: Pcm, head: int, tail: int) -> Pcm:
    """The same with the whole signal at hand."""
    loud = np.flatnonzero(np.abs(pcm) > np.float32(LIMIT))
    return pcm[max(0, loud[0] - head) : loud[-1] + 1 + tail] if len(loud) else pcm[:0]


def trim(pcm: Pcm, cuts: list[int], head: int, tail: int) -> Pcm:
    trimmer = SilenceTrimmer(threshold=float(np.float32(LIMIT)), head=head, tail=tail)
    blocks = np.split(pcm, sorted(min(cut, len(pcm)) for cut in cuts))
    return np.concatenate([NO_AUDIO, *(trimmer.push(block) for block in blocks)])


@given(samples, st.lists(st.integers(0, 60), max_size=8), st.integers(0, 12), st.integers(0, 12))
@settings(deadline=None, max_examples=300)
def test_equals_the_offline_trim(values: list[float], cuts: list[int], head: int, tail: int) -> None:
    pcm = np.array(values, np.float32)
    before = pcm.copy()
    assert np.array_equal(trim(pcm, cuts, head, tail), oracle(pcm, head, tail))
    assert np.array_equal(pcm, before)  # the caller's block is left alone


@given(samples, st.integers(0, 5), st.integers(0, 5))
@settings(deadline=None)
def test_nothing_audible_is_lost_and_what_is_certain_is_given_at_once(
    values: list[float], head: int, tail: int
) -> None:
    pcm = np.array(values, np.float32)
    trimmer = SilenceTrimmer(threshold=float(np.float32(LIMIT)), head=head, tail=tail)
    given_so_far = 0
    for end in range(1, len(pcm) + 1):
        given_so_far += len(trimmer.push(pcm[end - 1 : end]))
        assert given_so_far == len(oracle(pcm[:end], head, tail))  # neither early nor late, sample by sample
    given_audible = np.abs(oracle(pcm, head, tail)) > np.float32(LIMIT)
    assert given_audible.sum() == (np.abs(pcm) > np.float32(LIMIT)).sum()


def test_head_tail_and_the_pause_inside() -> None:
    pcm = np.zeros(100, np.float32)
    pcm[30], pcm[60] = 0.5, -0.5
    for cuts in ([], [30], [31], [29, 33, 58], list(range(100))):
        out = trim(pcm, cuts, 4, 7)
        assert len(out) == 4 + 31 + 7
        assert np.flatnonzero(out).tolist() == [4, 34]


def test_sound_at_both_edges_gets_no_pad() -> None:
    pcm = np.full(5, 0.5, np.float32)
    assert np.array_equal(trim(pcm, [2], 10, 10), pcm)


def test_all_silent_is_nothing() -> None:
    for size in (0, 1, 50):
        assert len(trim(np.full(size, 0.1, np.float32), [3, 20], 4, 7)) == 0


def test_what_is_kept_does_not_grow_before_the_first_sound() -> None:
    trimmer = SilenceTrimmer(threshold=LIMIT, head=5, tail=5)
    big = np.zeros(10_000, np.float32)
    trimmer.push(big)
    assert trimmer._kept.base is None  # five samples, not a view that keeps the block
    assert len(trimmer._kept) == 5


@pytest.mark.parametrize("values", [(-0.1, 0, 0), (float("nan"), 0, 0), (0.1, -1, 0), (0.1, 0, -1)])
def test_impossible_settings(values: tuple[float, int, int]) -> None:
    with pytest.raises(ValueError, match="negative"):
        SilenceTrimmer(threshold=values[0], head=values[1], tail=values[2])
