"""What happened to one stream, and every number that follows from it.

`Trace` holds raw facts; `report` is the only code that turns them into metrics, for the server, the client and the
simulator. A number that was not measured is None, never 0. No text is in here.
"""

import json
import math
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Final, Self

import numpy as np

from legato.core.events import Pcm
from legato.core.playback import STALL_THRESHOLDS, PlaybackModel, Stall, count_stalls

STAGES: Final = ("queue", "front", "decode", "chunk", "send")
"""The parts of ttfp: request -> first engine step -> start of the step that gave the first samples -> its end ->
first chunk complete -> first chunk sent. The sum is ttfp."""


def audible_at(pcm: Pcm, threshold_dbfs: float = -50.0) -> int | None:
    """Index of the first sample as loud as `threshold_dbfs` (dB of full scale, peak), None if all are quieter."""
    loud = np.abs(pcm) >= 10 ** (threshold_dbfs / 20)
    first = int(loud.argmax()) if len(loud) else 0
    return first if len(loud) and loud[first] else None


@dataclass(slots=True)
class Trace:
    """Raw facts of one stream. Times are absolute, in seconds on one monotonic clock; None: did not happen (yet).

    The sender records a chunk when it is sent, a client when it has arrived and is decoded.
    """

    sample_rate: int
    requested_at: float
    accepted_at: float | None = None  # admission let the request in
    first_step_at: float | None = None  # the engine began its first step
    first_block_at: float | None = None  # the engine began the first step that gave samples
    first_block_done_at: float | None = None
    first_chunk_at: float | None = None  # the first chunk was complete
    steps: int = 0  # of the engine; their sum, not a list, so that a trace grows with its chunks only
    step_seconds: float = 0.0
    chunks: list[tuple[float, int]] = field(default_factory=list)  # (time, samples)
    audible: int | None = None  # position of the first audible sample in the stream
    ended_at: float | None = None
    error: str | None = None  # code of `legato.errors`
    cancelled: bool = False

    @property
    def samples(self) -> int:
        """Length of all chunks so far."""
        return sum(samples for _, samples in self.chunks)

    def accept(self, now: float) -> None:
        """The request was admitted."""
        self.accepted_at = now

    def step(self, start: float, stop: float, samples: int) -> None:
        """The engine worked on this stream in [start, stop) and gave `samples` samples, maybe none."""
        if self.first_step_at is None:
            self.first_step_at = start
        if samples and self.first_block_at is None:
            self.first_block_at, self.first_block_done_at = start, stop
        self.steps += 1
        self.step_seconds += stop - start

    def chunk_ready(self, now: float) -> None:
        """A chunk is complete and waits to be sent. Only the first is recorded."""
        if self.first_chunk_at is None:
            self.first_chunk_at = now

    def chunk(self, pcm: Pcm, now: float) -> None:
        """The next chunk was sent, or has arrived, at `now`."""
        if self.audible is None:
            found = audible_at(pcm)
            self.audible = None if found is None else self.samples + found
        self.chunks.append((now, len(pcm)))

    def end(self, now: float, *, error: str | None = None, cancelled: bool = False) -> None:
        """The stream ended: completely, with an error's code, or because the listener cancelled it."""
        self.ended_at = now
        self.error = error
        self.cancelled = cancelled

    def to_json(self) -> str:
        """Return the facts as one line of JSON, without the line break."""
        return json.dumps(asdict(self), separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """The inverse of `to_json`.

        Raises:
            ValueError: the line is no JSON object of this kind; unknown names are refused.
        """
        data = json.loads(line)
        names = {item.name for item in fields(cls)}
        if not isinstance(data, dict) or not {"sample_rate", "requested_at"} <= data.keys() <= names:
            raise ValueError("not a trace: sample_rate or requested_at is missing, or a name is unknown")
        try:
            data["chunks"] = [(float(at), int(samples)) for at, samples in data.get("chunks", [])]
        except TypeError:
            raise ValueError("not a trace: chunks are malformed") from None
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Report:
    """Derived numbers. Durations in seconds; None: not applicable or not measured, which is never good or bad.

    Stalls are those of a player that starts with the first packet plus the prebuffer and resumes with any sample.
    A stream of one chunk cannot stall, nor one that nobody heard: they say nothing about stalls.
    """

    ttfp: float | None  # request -> first packet with audio
    ttfa: float | None  # request -> first audible sample played, by a player that starts at ttfp
    e2e: float | None  # request -> last sample
    audio: float  # seconds of audio
    rtf: float | None  # e2e / audio
    engine_rtf: float | None  # time in engine steps / audio
    chunks: int  # that carry audio
    stalls: int | None  # of at least 20 ms
    stall_counts: tuple[int, ...] | None  # of at least 20, 50, 100, 200 ms
    worst_stall: float | None  # the longest gap, however short; 0.0 if there was none
    stalled: float | None  # all gaps together
    rebuffer_ratio: float | None  # stalled / (stalled + played)
    stall_free_start: float | None  # s*: request -> earliest start of playback that never stalls
    underrun: float | None  # vLLM-Omni's: latest arrival against a start at the first chunk; not re-based
    admission: float | None  # request -> accepted, a part of "queue"
    stages: tuple[tuple[str, float], ...] | None  # (name, seconds) for each of STAGES; the sum is ttfp
    error: str | None
    cancelled: bool


def report(trace: Trace, prebuffer: float = 0.0) -> Report:
    """Derive all numbers from the facts; the only place where a metric is defined.

    A stream that was cancelled or failed is censored where it ended: later chunks do not exist, and a silence at
    that moment is a stall as far as it went, since audio was still due. Everything but the stalls is independent
    of `prebuffer` (seconds of audio).
    """
    censored_at = trace.ended_at if trace.cancelled or trace.error is not None else None
    chunks = [(at, n) for at, n in trace.chunks if n and (censored_at is None or at <= censored_at)]
    audio = sum(n for _, n in chunks) / trace.sample_rate
    ttfp = chunks[0][0] - trace.requested_at if chunks else None
    e2e = chunks[-1][0] - trace.requested_at if chunks else None
    ttfa, stall_free_start = _starts(trace, chunks)
    gaps, played = _play(trace, chunks, prebuffer, censored_at)
    counts = None if gaps is None else tuple(count_stalls(gaps, limit) for limit in STALL_THRESHOLDS)
    stalled = None if gaps is None else sum(gap.duration for gap in gaps)
    return Report(
        ttfp=ttfp,
        ttfa=ttfa,
        e2e=e2e,
        audio=audio,
        rtf=None if e2e is None else e2e / audio,
        engine_rtf=trace.step_seconds / audio if chunks and trace.steps else None,
        chunks=len(chunks),
        stalls=None if counts is None else counts[0],
        stall_counts=counts,
        worst_stall=None if gaps is None else max((gap.duration for gap in gaps), default=0.0),
        stalled=stalled,
        rebuffer_ratio=None if stalled is None else stalled / (stalled + played),
        stall_free_start=stall_free_start,
        underrun=None if gaps is None or stall_free_start is None or ttfp is None else stall_free_start - ttfp,
        admission=None if trace.accepted_at is None else trace.accepted_at - trace.requested_at,
        stages=_stages(trace, chunks),
        error=trace.error,
        cancelled=trace.cancelled,
    )


def _starts(trace: Trace, chunks: list[tuple[float, int]]) -> tuple[float | None, float | None]:
    """Return ttfa and s*.

    Sample k of chunk c can be played at max_{j <= c}(a_j - sum_{i < j} d_i) + k / rate: a chunk that is late
    moves everything after it. The last of these maxima is s*.
    """
    origin, ttfa, before = -math.inf, None, 0
    for at, samples in chunks:
        origin = max(origin, at - before / trace.sample_rate)
        if trace.audible is not None and before <= trace.audible < before + samples:
            ttfa = origin + trace.audible / trace.sample_rate - trace.requested_at
        before += samples
    return ttfa, origin - trace.requested_at if chunks else None


def _play(
    trace: Trace, chunks: list[tuple[float, int]], prebuffer: float, censored_at: float | None
) -> tuple[tuple[Stall, ...] | None, float]:
    """Return the gaps that the listener heard, and the seconds of audio that were played.

    None if no gap was possible: one chunk, or a stream that ended before anything was played.
    """
    if len(chunks) < 2:
        return None, 0.0
    player = PlaybackModel(trace.sample_rate, prebuffer)
    for at, samples in chunks:
        player.receive(samples, at)
    if censored_at is not None:
        played = player.played(censored_at)
        return player.stalls_until(censored_at) if played else None, played / trace.sample_rate
    # A stream that is still running is taken as complete: what is not known yet is no stall.
    player.end(chunks[-1][0] if trace.ended_at is None else max(trace.ended_at, chunks[-1][0]))
    return player.stalls, player.received / trace.sample_rate


def _stages(trace: Trace, chunks: list[tuple[float, int]]) -> tuple[tuple[str, float], ...] | None:
    """Split ttfp; None unless every edge was measured, because a part of a sum says nothing."""
    if not chunks:
        return None
    edges = [trace.requested_at]
    for edge in (trace.first_step_at, trace.first_block_at, trace.first_block_done_at, trace.first_chunk_at):
        if edge is None:
            return None
        edges.append(edge)
    edges.append(chunks[0][0])
    return tuple(zip(STAGES, (stop - start for start, stop in pairwise(edges)), strict=True))
