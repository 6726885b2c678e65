"""Takes the silence off both ends of a segment while it streams."""

from dataclasses import dataclass

import numpy as np

from legato.core.events import NO_AUDIO, Pcm


@dataclass(frozen=True, slots=True)
class Trim:
    """How much silence a segment keeps; the part of an engine's settings that every voice has.

    Attributes:
        head_ms: silence kept before the first audible sample of a segment.
        tail_ms: silence kept after the last one.
        silence_dbfs: a sample below this is silence; the level from which on metrics call a sample audible.
    """

    head_ms: float = 1.0
    tail_ms: float = 80.0
    silence_dbfs: float = -50.0

    def __post_init__(self) -> None:
        if not (0 <= self.head_ms <= 1000 and 0 <= self.tail_ms <= 1000):
            raise ValueError("head_ms and tail_ms must be from 0 to 1000")
        if not -120 <= self.silence_dbfs <= 0:
            raise ValueError("silence_dbfs must be from -120 to 0")

    def trimmer(self, sample_rate: int) -> "SilenceTrimmer":
        """A trimmer for one segment at this rate, in Hz."""
        return SilenceTrimmer(
            threshold=10 ** (self.silence_dbfs / 20),
            head=round(self.head_ms * sample_rate / 1000),
            tail=round(self.tail_ms * sample_rate / 1000),
        )


class SilenceTrimmer:
    """Drops what comes before the first audible sample, but `head` samples, and after the last one, but `tail`.

    Inside the segment nothing changes: a pause longer than `tail` is held back and given whole when sound follows.
    The result does not depend on how the audio was cut into blocks. The cut itself is a step of at most `threshold`,
    which is below hearing for the thresholds that make sense here.

    Args:
        threshold: amplitude above which a sample is audible, linear.
        head: samples kept before the first audible one.
        tail: samples kept after the last audible one.
    """

    def __init__(self, *, threshold: float, head: int, tail: int) -> None:
        if not (threshold >= 0 and head >= 0 and tail >= 0):
            raise ValueError("threshold, head and tail must not be negative")
        self._threshold = threshold
        self._head = head
        self._tail = tail
        self._started = False
        self._kept = NO_AUDIO  # before the start: the latest `head` samples
        self._held: list[Pcm] = []  # after it: silence beyond `tail`, which may be the end or a pause
        self._quiet = 0  # samples already given since the last audible one

    def push(self, pcm: Pcm) -> Pcm:
        """Add samples, shape (n,); return those that are certain to stay, maybe none.

        What was not returned when the segment ends is silence, and not wanted.
        """
        loud = np.flatnonzero(np.abs(pcm) > self._threshold)
        if not len(loud):
            return self._silence(pcm) if self._started else self._lead(pcm)
        last = int(loud[-1]) + 1
        if self._started:
            sound = [*self._held, pcm[:last]]
        else:
            self._started = True
            onset = int(loud[0])
            missing = max(0, self._head - onset)
            sound = [
                self._kept[len(self._kept) - min(missing, len(self._kept)) :],
                pcm[max(0, onset - self._head) : last],
            ]
            self._kept = NO_AUDIO
        self._held, self._quiet = [], 0
        return np.concatenate([*sound, self._silence(pcm[last:])])

    def _lead(self, pcm: Pcm) -> Pcm:
        joined = np.concatenate([self._kept, pcm])
        self._kept = joined[max(0, len(joined) - self._head) :].copy()
        return NO_AUDIO

    def _silence(self, pcm: Pcm) -> Pcm:
        room = self._tail - self._quiet
        given, rest = pcm[:room], pcm[room:]
        self._quiet += len(given)
        if len(rest):
            self._held.append(rest)
        return given
