"""Windows tile the frames, never ask for frames that are not there, and never exceed the chunk."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.windows import Window, WindowPlanner, WindowSpec


def test_growth_look_ahead_and_the_end() -> None:
    planner = WindowPlanner(WindowSpec(first=2, chunk=6, left=3, right=2))
    assert planner.push(3) == []
    assert planner.push(1) == [Window(0, 0, 2, 4, False)]
    assert planner.push(10) == [Window(0, 2, 6, 8, False), Window(3, 6, 12, 14, False)]
    assert planner.push(5) == []  # 19 frames, one short of the look-ahead
    assert planner.flush() == [Window(9, 12, 18, 19, False), Window(15, 18, 19, 19, True)]
    assert planner.flush() == []
    with pytest.raises(ValueError, match="push after flush"):
        planner.push(1)


def test_sliding_block_window() -> None:
    # Eight blocks of one frame, two back, one ahead: block 0 sees [0, 1], 3 sees [1..4], 7 sees [5..7].
    planner = WindowPlanner(WindowSpec(first=1, chunk=1, left=2, right=1))
    windows = planner.push(8) + planner.flush()
    seen = [list(range(w.ctx_start, w.end)) for w in windows]
    assert len(windows) == 8
    assert (seen[0], seen[3], seen[7]) == ([0, 1], [1, 2, 3, 4], [5, 6, 7])


def test_short_stream_starts_small() -> None:
    planner = WindowPlanner(WindowSpec(first=1, chunk=8, left=0, right=8))
    assert planner.push(8) == []
    assert [w.stop - w.start for w in planner.flush()] == [1, 2, 4, 1]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((0, 4, 0, 0), "first"),
        ((5, 4, 0, 0), "first"),
        ((1, 4, -1, 0), "context"),
        ((1, 4, 0, -1), "context"),
        ((1, 4, 0, 0, 0), "growth"),
    ],
)
def test_impossible_geometry(values: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WindowSpec(*values)


def test_negative_frames() -> None:
    with pytest.raises(ValueError, match="negative"):
        WindowPlanner(WindowSpec(1, 1, 0, 0)).push(-1)


@given(
    st.integers(1, 8),
    st.integers(0, 30),
    st.integers(0, 12),
    st.integers(0, 40),
    st.integers(1, 3),
    st.lists(st.integers(0, 40), max_size=10),
)
@settings(deadline=None)
def test_windows_tile_the_frames(
    first: int, more: int, left: int, right: int, growth: int, arrivals: list[int]
) -> None:
    spec = WindowSpec(first, first + more, left, right, growth)
    planner, have = WindowPlanner(spec), 0
    windows: list[Window] = []
    for frames in arrivals:
        have += frames
        new = planner.push(frames)
        assert all(w.end == w.stop + right <= have and not w.final for w in new)
        windows += new
    rest = planner.flush()
    assert [w.final for w in rest] == [False] * (len(rest) - 1) + [True] * bool(rest)
    windows += rest
    assert [w.start for w in windows] == [0, *(w.stop for w in windows)][: len(windows)]
    assert (windows[-1].stop if windows else 0) == have
    for w in windows:
        assert w.ctx_start == max(0, w.start - left)
        assert 0 < w.stop - w.start <= spec.chunk
        assert w.end == min(have, w.stop + right)
    whole = WindowPlanner(spec)  # however the frames arrived
    assert [(w.start, w.stop) for w in whole.push(have) + whole.flush()] == [(w.start, w.stop) for w in windows]
