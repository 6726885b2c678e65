"""A model of the listener's player. The server, the benchmark, the simulator and the tests all use it.

Exact by construction: it goes from event to event and has no time step. Between two stalls the player is a line,

    played(t) = base + (t - origin) * sample_rate        and it runs dry where that reaches `received`,

so nothing is accumulated and nothing drifts, however long the stream.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

STALL_THRESHOLDS: Final = (0.020, 0.050, 0.100, 0.200)
"""Seconds from which on a stall counts; the first is the one that metrics mean when they say "a stall"."""

# Less than a sample at any rate, and more than the rounding of a clock that has run for years.
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Stall:
    """The player was silent for `duration` seconds from `start` on, though audio was still due."""

    start: float
    duration: float


class PlaybackModel:
    """Starts once enough is buffered or the stream has ended, stalls when empty, resumes once enough is buffered.

    All times are absolute, in seconds on one clock. Each query takes a `now` not before the last event and
    changes nothing; only `receive`, `end` and `advance` move the model.

    Args:
        sample_rate: samples per second.
        prebuffer: seconds of audio needed to start.
        resume: seconds of audio needed to go on after a stall. Even with 0 it takes a sample.

    Raises:
        ValueError: the rate is not positive, or a buffer is negative.
    """

    def __init__(self, sample_rate: int, prebuffer: float = 0.0, resume: float = 0.0) -> None:
        if sample_rate < 1 or not (prebuffer >= 0 and resume >= 0):
            raise ValueError(f"need sample_rate >= 1 and buffers >= 0, got {sample_rate}, {prebuffer}, {resume}")
        self._rate = sample_rate
        self._needed = max(1, round(prebuffer * sample_rate))  # samples, to start or to go on
        self._resume = max(1, round(resume * sample_rate))
        self._now = -math.inf  # time of the last event
        self._received = 0
        self._base = 0  # samples played before `_origin`
        self._origin: float | None = None  # since when it plays; None while it is silent
        self._dry_since: float | None = None  # start of the stall it is in
        self._started_at: float | None = None
        self._ended = False
        self._stalls: list[Stall] = []

    @property
    def received(self) -> int:
        """Samples received so far."""
        return self._received

    @property
    def started_at(self) -> float | None:
        """When the first sample was played."""
        return self._started_at

    @property
    def stalls(self) -> tuple[Stall, ...]:
        """The stalls that are over, in order, however short."""
        return tuple(self._stalls)

    @property
    def stalled(self) -> float:
        """Seconds of all stalls that are over. The wait for the start is none."""
        return sum(stall.duration for stall in self._stalls)

    def stall_count(self, at_least: float = STALL_THRESHOLDS[0]) -> int:
        """How many of the stalls that are over lasted `at_least` seconds."""
        return count_stalls(self._stalls, at_least)

    def receive(self, samples: int, now: float) -> None:
        """`samples` more samples arrived at `now`; none is allowed, and no more than `advance`.

        Raises:
            ValueError: negative samples, audio after the end, or time went backwards.
        """
        if samples < 0:
            raise ValueError(f"samples cannot be negative, got {samples}")
        if samples and self._ended:
            raise ValueError("audio after the end of the stream")
        self.advance(now)
        self._received += samples
        self._play_if_enough(now)

    def end(self, now: float) -> None:
        """The stream is complete: what is buffered plays out.

        A silence that only the end closes was no stall: no audio was due.

        Raises:
            ValueError: time went backwards.
        """
        self.advance(now)
        self._ended = True
        self._play_if_enough(now)
        self._dry_since = None

    def advance(self, now: float) -> None:
        """Nothing happened up to `now`.

        Raises:
            ValueError: time went backwards.
        """
        self._check(now)
        self._now = now
        if self._origin is not None and not self._ended:
            dry = self._dry_at(self._origin)
            if now > dry + _ROUNDING:
                self._origin = None
                self._base = self._received
                self._dry_since = dry

    def played(self, now: float) -> int:
        """Samples that have been played completely at `now`.

        Raises:
            ValueError: `now` is before the last event.
        """
        self._check(now)
        if self._origin is None:
            return self._base
        passed = math.floor((now - self._origin + _ROUNDING) * self._rate)
        return min(self._received, self._base + passed)

    def lead(self, now: float) -> float:
        """Seconds of audio received and not yet played at `now`, also while the player waits to start.

        Raises:
            ValueError: `now` is before the last event.
        """
        self._check(now)
        if self._origin is None:
            return (self._received - self._base) / self._rate
        return max(0.0, self._dry_at(self._origin) - now)

    def dry_time(self, now: float) -> float:
        """When the player runs dry if nothing more arrives: `now` if it already did, or waits to go on.

        -inf before the start: who hears nothing yet has waited longest, and comes before everyone else.

        Raises:
            ValueError: `now` is before the last event.
        """
        self._check(now)
        if self._started_at is None:
            return -math.inf
        return now if self._origin is None else max(now, self._dry_at(self._origin))

    def stalls_until(self, now: float) -> tuple[Stall, ...]:
        """`stalls`, and the one that the player is in at `now` as far as it has gone.

        Raises:
            ValueError: `now` is before the last event.
        """
        self._check(now)
        since = self._dry_since
        if self._origin is not None and not self._ended:
            since = self._dry_at(self._origin)
        if since is None or now <= since + _ROUNDING:
            return self.stalls
        return (*self._stalls, Stall(since, now - since))

    def _check(self, now: float) -> None:
        if not now >= self._now:
            raise ValueError(f"time went backwards, from {self._now} to {now}")

    def _dry_at(self, origin: float) -> float:
        return origin + (self._received - self._base) / self._rate

    def _play_if_enough(self, now: float) -> None:
        """Start or go on, if the player is silent and may."""
        buffered = self._received - self._base
        if self._origin is not None or not (buffered >= self._needed or (self._ended and buffered)):
            return
        self._origin = now
        if self._dry_since is None:
            self._started_at = now
            self._needed = self._resume
        else:
            self._stalls.append(Stall(self._dry_since, now - self._dry_since))
            self._dry_since = None


def count_stalls(stalls: Iterable[Stall], at_least: float) -> int:
    """How many of `stalls` lasted `at_least` seconds."""
    return sum(stall.duration >= at_least - _ROUNDING for stall in stalls)
