"""Every metric from hand-made facts, so that a definition cannot drift."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.playback import PlaybackModel
from legato.core.trace import STAGES, Trace, audible_at, report


def pcm(samples: int, silent: int = 0) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    out = np.full(samples, 0.1, np.float32)
    out[:silent] = 0.0
    return out


def test_audible_at() -> None:
    assert audible_at(pcm(10, silent=4)) == 4
    assert audible_at(-pcm(10)) == 0
    assert audible_at(np.array([0.003, 0.0032], np.float32)) == 1  # -50 dBFS is 0.00316
    assert audible_at(np.array([0.003], np.float32), threshold_dbfs=-60) == 0
    assert audible_at(pcm(10, silent=10)) is None
    assert audible_at(pcm(0)) is None


def served() -> Trace:
    trace = Trace(1000, requested_at=100.0)
    trace.accept(100.01)
    trace.step(100.05, 100.08, 0)  # prefill
    trace.step(100.08, 100.12, 200)
    trace.step(100.12, 100.16, 300)
    trace.chunk_ready(100.14)
    trace.chunk(pcm(200, silent=200), 100.2)
    trace.chunk_ready(100.25)
    trace.chunk(pcm(300, silent=50), 100.3)
    trace.chunk(pcm(500), 100.9)
    trace.end(100.9)
    return trace


def test_all_numbers() -> None:
    trace = served()
    assert trace.samples == 1000
    got = report(trace)
    assert got.ttfp == pytest.approx(0.2)
    assert got.ttfa == pytest.approx(0.2 + 0.25)  # 250 ms of silence are played first
    assert got.e2e == pytest.approx(0.9)
    assert got.audio == 1.0
    assert got.rtf == pytest.approx(0.9)
    assert got.engine_rtf == pytest.approx(0.11)
    assert got.chunks == 3
    assert got.stalls == 1  # dry at 100.7, next chunk at 100.9
    assert got.stall_counts == (1, 1, 1, 1)
    assert got.worst_stall == got.stalled == pytest.approx(0.2)
    assert got.rebuffer_ratio == pytest.approx(0.2 / 1.2)
    assert got.stall_free_start == pytest.approx(0.4)
    assert got.underrun == pytest.approx(0.2)
    assert got.admission == pytest.approx(0.01)
    assert got.error is None
    assert not got.cancelled


def test_stages_add_up_to_ttfp() -> None:
    got = report(served())
    assert got.stages is not None
    assert [name for name, _ in got.stages] == list(STAGES)
    assert [seconds for _, seconds in got.stages] == [pytest.approx(x) for x in (0.05, 0.03, 0.04, 0.02, 0.06)]
    assert sum(seconds for _, seconds in got.stages) == pytest.approx(got.ttfp)


def test_prebuffer_moves_the_stalls_only() -> None:
    got = report(served(), prebuffer=0.4)  # starts at 100.3, dry at 100.8
    assert got.stalled == pytest.approx(0.1)
    assert report(served(), prebuffer=0.5).stalled == pytest.approx(0.1)
    assert report(served(), prebuffer=0.6).stalls == 0
    assert report(served(), prebuffer=0.6).worst_stall == 0.0
    assert got.ttfa == report(served()).ttfa


def test_silence_already_playing_is_not_counted_twice() -> None:
    trace = Trace(1000, 0.0)
    trace.chunk(pcm(400, silent=400), 0.1)
    trace.chunk(pcm(100), 0.3)
    assert report(trace).ttfa == pytest.approx(0.5)
    late = Trace(1000, 0.0)
    late.chunk(pcm(100, silent=100), 0.1)
    late.chunk(pcm(100), 0.8)
    assert report(late).ttfa == pytest.approx(0.8)


def test_a_header_is_not_audio() -> None:
    trace = Trace(1000, 0.0)
    trace.chunk(pcm(0), 0.01)
    trace.chunk(pcm(100), 0.5)
    got = report(trace)
    assert got.ttfp == 0.5
    assert got.chunks == 1


def test_one_chunk_says_nothing_about_stalls() -> None:
    trace = Trace(1000, 0.0)
    trace.chunk(pcm(100), 0.5)
    got = report(trace)
    assert (got.stalls, got.stall_counts, got.worst_stall, got.stalled) == (None,) * 4
    assert (got.rebuffer_ratio, got.underrun) == (None, None)
    assert got.stall_free_start == 0.5
    assert got.stages is None
    assert got.admission is None
    assert got.engine_rtf is None


def test_nothing_measured_is_not_zero() -> None:
    got = report(Trace(1000, 0.0))
    assert (got.ttfp, got.ttfa, got.e2e, got.rtf, got.engine_rtf, got.stalls, got.stages) == (None,) * 7
    assert (got.stall_free_start, got.underrun) == (None, None)
    assert got.audio == 0.0
    silent = Trace(1000, 0.0)
    silent.chunk(pcm(100, silent=100), 0.5)
    assert report(silent).ttfa is None


@pytest.mark.parametrize("how", [{"cancelled": True}, {"error": "engine_failed"}])
def test_a_torso_is_censored_at_its_end(how: dict[str, bool | str]) -> None:
    trace = Trace(1000, 0.0)
    for at in (0.1, 0.2, 0.9):
        trace.chunk(pcm(200), at)
    trace.end(0.7, **how)
    got = report(trace)
    assert got.chunks == 2
    assert got.audio == 0.4
    assert got.stalls == 1  # silent from 0.5 to 0.7, and more was due
    assert got.stalled == pytest.approx(0.2)
    assert got.rebuffer_ratio == pytest.approx(0.2 / 0.6)
    assert (got.cancelled, got.error) == (how.get("cancelled", False), how.get("error"))


def test_a_cancelled_stream_plays_until_the_cancel() -> None:
    trace = Trace(1000, 0.0)
    trace.chunk(pcm(100), 0.0)
    trace.chunk(pcm(900), 0.2)
    trace.end(0.4, cancelled=True)
    assert report(trace).rebuffer_ratio == pytest.approx(0.1 / 0.4)
    assert report(trace, prebuffer=9.0).stalls is None  # it never began to play


def test_json_round_trip() -> None:
    line = served().to_json()
    assert "\n" not in line
    assert Trace.from_json(line) == served()
    assert Trace.from_json('{"sample_rate": 8000, "requested_at": 1}') == Trace(8000, 1.0)
    for bad in ("[]", "{", "{}", '{"sample_rate": 1, "requested_at": 0, "text": "x"}'):
        with pytest.raises(ValueError):  # noqa: PT011
            Trace.from_json(bad)
    with pytest.raises(ValueError, match="malformed"):
        Trace.from_json('{"sample_rate": 1, "requested_at": 0, "chunks": [1]}')
    with pytest.raises(ValueError, match="JSON compliant"):
        Trace(8000, float("nan")).to_json()


@given(st.lists(st.tuples(st.floats(0, 0.5), st.integers(1, 400)), min_size=2, max_size=12))
@settings(deadline=None)
def test_a_start_at_s_star_never_stalls(arrivals: list[tuple[float, int]]) -> None:
    trace, now = Trace(1000, 5.0), 5.0
    for wait, samples in arrivals:
        now += wait
        trace.chunk(pcm(samples), now)
    got = report(trace)
    assert got.stall_free_start is not None
    assert got.ttfp is not None
    assert got.underrun is not None
    assert got.stalled is not None
    assert got.stall_free_start == pytest.approx(got.ttfp + got.stalled, abs=1e-4)  # the last origin is the earliest
    assert got.underrun >= 0
    start, player = 5.0 + got.stall_free_start, PlaybackModel(1000)
    player.receive(sum(n for at, n in trace.chunks if at <= start), start)
    for at, samples in trace.chunks:
        if at > start:
            player.receive(samples, at)
    player.end(max(now, start))
    assert player.stalls == ()
