"""Cuts made samples into delivery chunks: small first, then as large as the policy likes.

Every policy is the same rule with other numbers: a chunk ends at a boundary once it has `minimum` samples, or at
`maximum` samples whatever comes; the first one ends at `first` samples.

    fixed       minimum == maximum         boundaries never matter
    semantic    minimum == 1               a chunk is what lies between two boundaries, up to a limit
    hydraulic   minimum << maximum         boundaries inside a range
"""

from collections import deque
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from legato.core.events import Pcm

ChunkMode = Literal["fixed", "semantic", "hydraulic"]

_FIRST_MS = 150.0


@dataclass(frozen=True, slots=True)
class ChunkSpec:
    """When a chunk is complete.

    Args:
        first: samples of the first chunk at most, 1..maximum.
        minimum: samples from which on a boundary ends a chunk, 1..maximum.
        maximum: samples of a chunk at most.
        hold: seconds that a made sample waits for its chunk to fill at most; None for as long as it takes.

    Raises:
        ValueError: a value is out of its range.
    """

    first: int
    minimum: int
    maximum: int
    hold: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.minimum <= self.maximum:
            raise ValueError(f"need 1 <= minimum <= maximum samples, got {self.minimum} and {self.maximum}")
        if not 1 <= self.first <= self.maximum:
            raise ValueError(f"need 1 <= first <= maximum samples, got {self.first} and {self.maximum}")
        if self.hold is not None and not self.hold >= 0:
            raise ValueError(f"hold cannot be negative, got {self.hold} seconds")

    @classmethod
    def fixed(cls, size: int, first: int | None = None, *, hold: float | None = None) -> Self:
        """Chunks of `size` samples, the first of `first` (default: the same); boundaries are ignored."""
        return cls(first=size if first is None else first, minimum=size, maximum=size, hold=hold)

    @classmethod
    def semantic(cls, limit: int, first: int | None = None, *, hold: float | None = None) -> Self:
        """A chunk per boundary, cut at `limit` samples; the first at `first` (default: the same)."""
        return cls(first=limit if first is None else first, minimum=1, maximum=limit, hold=hold)

    @classmethod
    def hydraulic(cls, minimum: int, maximum: int, first: int | None = None, *, hold: float | None = None) -> Self:
        """Chunks that end at a boundary between `minimum` and `maximum`; the first at `first` (default: minimum)."""
        return cls(first=minimum if first is None else first, minimum=minimum, maximum=maximum, hold=hold)

    @classmethod
    def from_ms(
        cls,
        rate: int,
        *,
        mode: ChunkMode = "hydraulic",
        minimum_ms: float = 150.0,
        maximum_ms: float = 800.0,
        first_ms: float | None = None,
        hold_ms: float | None = None,
    ) -> Self:
        """Build a spec from milliseconds of audio at `rate` samples per second.

        `maximum_ms` is the size of a fixed and the limit of a semantic chunk; only "hydraulic" reads `minimum_ms`.
        `first_ms` is 150, or `maximum_ms` if that is less, unless given.

        Raises:
            ValueError: unknown mode, or a value out of its range.
        """
        maximum = round(maximum_ms * rate / 1000)
        first = round((min(_FIRST_MS, maximum_ms) if first_ms is None else first_ms) * rate / 1000)
        hold = None if hold_ms is None else hold_ms / 1000
        match mode:
            case "fixed":
                return cls.fixed(maximum, first, hold=hold)
            case "semantic":
                return cls.semantic(maximum, first, hold=hold)
            case "hydraulic":
                return cls.hydraulic(round(minimum_ms * rate / 1000), maximum, first, hold=hold)
            case _:
                raise ValueError(f'mode must be "fixed", "semantic" or "hydraulic", got "{mode}"')


class Chunker:
    """Collects the samples of one stream and gives them out in chunks, none of them empty.

    The chunks do not depend on how the samples were cut into pushes. A chunk that lies within one pushed block is
    a view of it, so blocks must not be written to after they were pushed.
    """

    def __init__(self, spec: ChunkSpec) -> None:
        self._spec = spec
        self._limit = spec.first  # samples of the chunk being filled at most
        self._blocks: deque[tuple[Pcm, float]] = deque()  # with the time at which they were made
        self._waiting = 0
        self._ended = False

    @property
    def waiting(self) -> int:
        """Samples held back until their chunk is complete; always fewer than `maximum`."""
        return self._waiting

    def push(self, pcm: Pcm, now: float) -> list[Pcm]:
        """Add samples made at `now` (seconds); return the chunks that they fill.

        Raises:
            ValueError: `flush` was called before.
        """
        if self._ended:
            raise ValueError("push after flush: the audio has ended")
        if len(pcm) == 0:
            return []
        self._blocks.append((pcm, now))
        self._waiting += len(pcm)
        out: list[Pcm] = []
        while self._waiting >= self._limit:
            out.append(self._take(self._limit))
        return out

    def boundary(self, now: float) -> list[Pcm]:  # noqa: ARG002 - as every event has its time
        """Speech may be parted after the samples pushed so far; return the chunk that ends here, if one does."""
        if self._waiting >= min(self._spec.minimum, self._limit):
            return self.release()
        return []

    def timer(self) -> float | None:
        """Absolute time from which `tick` gives something; None if it would give nothing."""
        if self._spec.hold is None or not self._blocks:
            return None
        return self._blocks[0][1] + self._spec.hold

    def tick(self, now: float) -> list[Pcm]:
        """Return what is held, as one chunk, if its oldest sample has waited `hold` seconds at `now`."""
        due = self.timer()
        return [] if due is None or now < due else self.release()

    def release(self) -> list[Pcm]:
        """The listener is about to run dry: return what is held, as one chunk."""
        return [self._take(self._waiting)] if self._waiting else []

    def flush(self) -> list[Pcm]:
        """The audio has ended: return what is held, as one chunk. Calling it again gives nothing."""
        self._ended = True
        return self.release()

    def _take(self, size: int) -> Pcm:
        """Remove and return the first `size` samples, 1..waiting."""
        parts: list[Pcm] = []
        missing = size
        while missing:
            block, made_at = self._blocks.popleft()
            parts.append(block[:missing])
            if len(block) > missing:
                self._blocks.appendleft((block[missing:], made_at))
            missing -= len(parts[-1])
        self._waiting -= size
        self._limit = self._spec.maximum
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
