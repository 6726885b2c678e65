"""Takes the silence off both ends of a segment while it streams."""

import numpy as np

from legato.core.events import NO_AUDIO, Pcm


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
        """Add samples, shape (n,); return those that are certain to stay, maybe none."""
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

    def flush(self) -> Pcm:
        """The segment has ended. What is still held is silence, and is dropped."""
        self._held, self._kept = [], NO_AUDIO
        return NO_AUDIO

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
