"""Chunks: sizes per policy, time limits, and that no sample is lost, copied without need, or out of place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.chunker import Chunker, ChunkMode, ChunkSpec
from legato.core.events import NO_AUDIO, Pcm


def ramp(samples: int) -> Pcm:
    return np.arange(samples, dtype=np.float32)


def sizes(chunks: list[Pcm]) -> list[int]:
    return [len(chunk) for chunk in chunks]


def test_fixed_ignores_boundaries() -> None:
    chunker = Chunker(ChunkSpec.fixed(10, 4))
    assert sizes(chunker.push(ramp(3), 0.0) + chunker.boundary(0.0)) == []
    assert sizes(chunker.push(ramp(30), 0.0)) == [4, 10, 10]
    assert chunker.boundary(0.0) == []
    assert chunker.waiting == 9
    assert sizes(chunker.flush()) == [9]
    assert chunker.flush() == []
    with pytest.raises(ValueError, match="push after flush"):
        chunker.push(ramp(1), 0.0)


def test_semantic_ends_at_boundaries() -> None:
    chunker = Chunker(ChunkSpec.semantic(10, 4))
    assert sizes(chunker.push(ramp(6), 0.0)) == [4]
    assert sizes(chunker.boundary(0.0)) == [2]
    assert chunker.boundary(0.0) == []
    assert sizes(chunker.push(ramp(13), 0.0) + chunker.boundary(0.0)) == [10, 3]


def test_hydraulic_ends_at_boundaries_within_its_range() -> None:
    chunker = Chunker(ChunkSpec.hydraulic(5, 10))
    assert sizes(chunker.push(ramp(5), 0.0)) == [5]  # the first
    assert sizes(chunker.push(ramp(4), 0.0) + chunker.boundary(0.0)) == []  # too short: this boundary passes by
    assert sizes(chunker.push(ramp(3), 0.0) + chunker.boundary(0.0)) == [7]
    assert sizes(chunker.push(ramp(12), 0.0) + chunker.boundary(0.0)) == [10]


def test_a_sample_waits_no_longer_than_hold() -> None:
    chunker = Chunker(ChunkSpec.fixed(10, hold=0.5))
    assert chunker.timer() is None
    assert chunker.tick(9.0) == []
    chunker.push(ramp(4), 1.0)
    assert sizes(chunker.push(ramp(9), 1.2)) == [10]
    assert chunker.timer() == 1.7  # what is left was made at 1.2
    assert chunker.tick(1.6) == []
    assert sizes(chunker.tick(1.7)) == [3]
    assert chunker.timer() is None


def test_without_hold_there_is_no_timer() -> None:
    chunker = Chunker(ChunkSpec.fixed(10))
    chunker.push(ramp(4), 1.0)
    assert chunker.timer() is None
    assert chunker.tick(99.0) == []


def test_release_gives_what_there_is() -> None:
    chunker = Chunker(ChunkSpec.fixed(10, 6))
    assert chunker.release() == []
    chunker.push(ramp(4), 0.0)
    assert sizes(chunker.release()) == [4]
    assert chunker.waiting == 0
    assert sizes(chunker.push(ramp(10), 0.0)) == [10]  # that was the first chunk


def test_no_copy_within_a_block() -> None:
    block = ramp(25)
    chunker = Chunker(ChunkSpec.fixed(10))
    assert all(np.shares_memory(chunk, block) for chunk in chunker.push(block, 0.0) + chunker.flush())


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("fixed", (3600, 19200, 19200)), ("semantic", (3600, 1, 19200)), ("hydraulic", (3600, 3600, 19200))],
)
def test_from_milliseconds(mode: ChunkMode, expected: tuple[int, int, int]) -> None:
    spec = ChunkSpec.from_ms(24000, mode=mode, hold_ms=250)
    assert (spec.first, spec.minimum, spec.maximum) == expected
    assert spec.hold == 0.25


def test_from_milliseconds_first() -> None:
    assert ChunkSpec.from_ms(24000) == ChunkSpec.hydraulic(3600, 19200)
    assert ChunkSpec.from_ms(1000, mode="fixed", maximum_ms=40) == ChunkSpec(40, 40, 40)
    assert ChunkSpec.from_ms(1000, first_ms=20).first == 20
    assert ChunkSpec.semantic(40) == ChunkSpec(40, 1, 40)
    with pytest.raises(ValueError, match='got "magic"'):
        ChunkSpec.from_ms(1000, mode="magic")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((1, 0, 5), "minimum"),
        ((1, 6, 5), "minimum"),
        ((0, 1, 5), "first"),
        ((6, 1, 5), "first"),
        ((1, 1, 5, -1.0), "hold"),
    ],
)
def test_impossible_specs(values: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ChunkSpec(*values)


@st.composite
def specs(draw: st.DrawFn) -> ChunkSpec:
    maximum = draw(st.integers(1, 60))
    return ChunkSpec(draw(st.integers(1, maximum)), draw(st.integers(1, maximum)), maximum)


@given(specs(), st.lists(st.tuples(st.integers(0, 90), st.booleans()), max_size=8), st.data())
@settings(deadline=None)
def test_cutting_changes_nothing_and_loses_nothing(
    spec: ChunkSpec, runs: list[tuple[int, bool]], data: st.DataObject
) -> None:
    pcm = ramp(sum(samples for samples, _ in runs))
    results = []
    for cut in (False, True):
        chunker, out, at = Chunker(spec), list[Pcm](), 0
        for samples, boundary in runs:
            edges = sorted(data.draw(st.lists(st.integers(0, samples), max_size=4))) if cut else []
            for start, stop in zip([0, *edges], [*edges, samples], strict=True):
                out += chunker.push(pcm[at + start : at + stop], 0.0)
                assert chunker.waiting < spec.maximum
            at += samples
            if boundary:
                new = chunker.boundary(0.0)
                assert all(len(chunk) >= min(spec.minimum, spec.first) for chunk in new)
                out += new
        out += chunker.flush()
        assert np.array_equal(np.concatenate([NO_AUDIO, *out]), pcm)
        assert all(0 < len(chunk) <= spec.maximum for chunk in out)
        assert all(len(chunk) <= spec.first for chunk in out[:1])
        results.append(sizes(out))
    assert results[0] == results[1]


@given(specs(), st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), max_size=10), st.floats(0, 1))
@settings(deadline=None)
def test_nothing_waits_past_the_time_limit(spec: ChunkSpec, arrivals: list[tuple[int, float]], hold: float) -> None:
    chunker = Chunker(ChunkSpec(spec.first, spec.minimum, spec.maximum, hold))
    now, made, out = 0.0, list[float](), 0
    for samples, wait in arrivals:
        while (due := chunker.timer()) is not None and due <= now + wait:
            out += sum(sizes(chunker.tick(due)))
        now += wait
        made += [now] * samples
        out += sum(sizes(chunker.push(ramp(samples), now)))
        assert all(now - at <= hold for at in made[out:])
        assert chunker.waiting == len(made) - out
