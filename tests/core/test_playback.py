"""The player's model, against scripted arrivals that the browser player must agree with, and against a time step."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.playback import STALL_THRESHOLDS, PlaybackModel, Stall

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "playback.json").read_text("utf-8"))["cases"]


@pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
def test_vector(case: dict[str, Any]) -> None:
    player = PlaybackModel(case["sample_rate"], case["prebuffer"], case["resume"])
    expect, events = case["expect"], list(case["events"])
    for query in [*expect["queries"], {"at": math.inf}]:
        while events and events[0][0] <= query["at"]:
            at, what = events.pop(0)
            if what == "end":
                player.end(at)
            else:
                player.receive(what, at)
        if "played" in query:
            at = query["at"]
            assert player.played(at) == query["played"]
            assert player.lead(at) == pytest.approx(query["lead"], abs=1e-9)
            assert player.dry_time(at) == (-math.inf if query["dry"] is None else pytest.approx(query["dry"]))
    assert player.started_at == expect["started_at"]
    assert [(s.start, s.duration) for s in player.stalls] == [pytest.approx(stall) for stall in expect["stalls"]]
    assert player.stalled == pytest.approx(sum(duration for _, duration in expect["stalls"]))
    if "counts" in expect:
        assert [player.stall_count(limit) for limit in STALL_THRESHOLDS] == expect["counts"]
    assert player.received == sum(what for _, what in case["events"] if what != "end")


def test_asking_changes_nothing() -> None:
    player = PlaybackModel(1000)
    player.receive(100, 0.0)
    for _ in range(2):
        assert player.lead(5.0) == 0
        assert player.dry_time(5.0) == 5
        assert player.played(5.0) == 100
        assert player.stalls_until(5.0) == (Stall(0.1, 4.9),)
    player.receive(100, 0.05)  # still in time: the questions did not let time pass
    assert player.dry_time(0.05) == 0.2
    assert player.stalls_until(0.2) == ()


def test_open_stall() -> None:
    player = PlaybackModel(1000)
    assert player.stalls_until(9.0) == ()
    player.receive(100, 0.0)
    player.advance(1.0)
    assert player.stalls == ()
    assert player.stalls_until(1.5) == (Stall(0.1, 1.4),)
    assert player.stall_count() == 0
    player.receive(100, 2.0)
    assert player.stalls_until(2.05) == player.stalls == (Stall(0.1, 1.9),)
    player.end(2.05)
    assert player.stalls_until(9.0) == player.stalls


def test_rounding_is_no_stall() -> None:
    player, origin = PlaybackModel(24000), 123456.789
    for i in range(5000):
        player.receive(480, origin + 0.02 * i + 1e-9 * (i % 3))
    assert player.stalls == ()
    assert player.played(origin + 99.99) == 99.99 * 24000


def test_lateness_adds_up() -> None:
    # Each arrival is 0.4 microseconds later than the last: forgiven alone, not in sum.
    player = PlaybackModel(1000)
    for i in range(10):
        player.receive(100, i * (0.1 + 4e-7))
    assert player.stalled == pytest.approx(9 * 4e-7, abs=1e-9)


def test_callers_mistakes() -> None:
    for values in ((0, 0.0, 0.0), (1000, -0.1, 0.0), (1000, 0.0, -0.1), (1000, math.nan, 0.0)):
        with pytest.raises(ValueError, match="sample_rate"):
            PlaybackModel(*values)
    player = PlaybackModel(1000)
    with pytest.raises(ValueError, match="negative"):
        player.receive(-1, 0.0)
    player.receive(10, 1.0)
    calls = [player.advance, player.end, player.played, player.lead, player.dry_time, player.stalls_until]
    for call in [*calls, lambda now: player.receive(1, now)]:
        with pytest.raises(ValueError, match="backwards"):
            call(0.9)
    player.end(1.0)
    player.receive(0, 1.0)
    with pytest.raises(ValueError, match="after the end"):
        player.receive(1, 1.0)


# Whole milliseconds at 1000 samples per second, so that a player with a time step of one sample is exact too.
ARRIVALS = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 90)), max_size=12)


@given(ARRIVALS, st.integers(0, 100), st.integers(0, 100), st.integers(0, 80))
@settings(deadline=None)
def test_equals_a_player_with_a_time_step(
    arrivals: list[tuple[int, int]], prebuffer: int, resume: int, tail: int
) -> None:
    player = PlaybackModel(1000, prebuffer / 1000, resume / 1000)
    events, at = list[tuple[int, int]](), 0
    for wait, samples in arrivals:
        at += wait
        events.append((at, samples))
    end = at + tail
    received = played = 0
    started, playing = None, False
    gap, gaps, due = 0, list[int](), False
    for ms in range(end + 1):
        arrived = [samples for when, samples in events if when == ms]
        received += sum(arrived)
        for samples in arrived:
            player.receive(samples, ms / 1000)
        if ms == end:
            player.end(ms / 1000)
        if playing and received == played:
            playing, gap, due = False, 0, True
        if not playing and received > played:
            needed = prebuffer if started is None else resume
            if received - played >= needed or ms == end:
                playing = True
                if started is None:
                    started = ms
                elif due and gap:
                    gaps.append(gap)
        assert player.played(ms / 1000) == played
        played += playing
        gap += not playing
    assert player.started_at == (None if started is None else pytest.approx(started / 1000))
    assert [s.duration for s in player.stalls] == [pytest.approx(gap / 1000) for gap in gaps]
    assert player.played(end / 1000 + 10) == received
    assert player.lead(end / 1000 + 10) == 0


@given(ARRIVALS, st.floats(0, 0.2))
@settings(deadline=None)
def test_time_is_accounted_for(arrivals: list[tuple[int, int]], resume: float) -> None:
    player, now = PlaybackModel(1000, resume=resume), 0.0
    for wait, samples in arrivals:
        now += wait / 700
        lead, dry = player.lead(now), player.dry_time(now)
        player.receive(samples, now)
        assert player.lead(now) == pytest.approx(lead + samples / 1000)
        assert player.dry_time(now) >= dry
    player.end(now)
    if player.started_at is not None:
        played_out = player.started_at + player.stalled + player.received / 1000
        assert player.dry_time(now) == pytest.approx(max(now, played_out))
