"""Which frames a windowed decoder (block-causal DiT, convolutional vocoder) must see, and when.

Integers only. The model slices its tensors with the windows; it does no index arithmetic of its own.

    left context        kept           look-ahead
    [ctx_start ......][start ... stop][....... end]
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Geometry, in frames. What a window keeps grows from `first` by the factor `growth` up to `chunk`.

    Args:
        first: frames kept of the first window, 1..chunk.
        chunk: frames kept of a window at most.
        left: frames of context before the kept ones: at least the decoder's receptive field, or its edges are noise.
        right: frames of look-ahead after the kept ones.
        growth: factor from one window to the next, 1 or more.

    Raises:
        ValueError: a value is out of its range.
    """

    first: int
    chunk: int
    left: int
    right: int
    growth: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.chunk:
            raise ValueError(f"need 1 <= first <= chunk frames, got first={self.first}, chunk={self.chunk}")
        if self.left < 0 or self.right < 0:
            raise ValueError(f"context cannot be negative, got left={self.left}, right={self.right} frames")
        if self.growth < 1:
            raise ValueError(f"growth must be 1 or more, got {self.growth}")


@dataclass(frozen=True, slots=True)
class Window:
    """Decode frames [ctx_start, end), keep [start, stop). Windows follow each other without gap or overlap."""

    ctx_start: int
    start: int
    stop: int
    end: int
    final: bool  # no window follows


class WindowPlanner:
    """Turns 'n more frames arrived' into the windows that can now be decoded, for one stream."""

    def __init__(self, spec: WindowSpec) -> None:
        self._spec = spec
        self._size = spec.first
        self._have = 0
        self._done = 0
        self._ended = False

    def push(self, frames: int) -> list[Window]:
        """`frames` more frames arrived; return the windows whose look-ahead is now complete.

        Raises:
            ValueError: `frames` is negative, or `flush` was called before.
        """
        if frames < 0:
            raise ValueError(f"frames cannot be negative, got {frames}")
        if self._ended:
            raise ValueError("push after flush: the frames have ended")
        self._have += frames
        out: list[Window] = []
        while self._have >= self._done + self._size + self._spec.right:
            out.append(self._take(self._done + self._size))
        return out

    def flush(self) -> list[Window]:
        """No more frames will arrive: return windows for the rest, with what look-ahead there is.

        None of them keeps more than `chunk` frames; the last one is final. The list is empty, and no window was
        final, if everything was already returned, which needs `right == 0`. Calling it again gives nothing.
        """
        self._ended = True
        out: list[Window] = []
        while self._done < self._have:
            out.append(self._take(min(self._have, self._done + self._size)))
        return out

    def _take(self, stop: int) -> Window:
        start, self._done = self._done, stop
        self._size = min(self._spec.chunk, self._size * self._spec.growth)
        return Window(
            ctx_start=max(0, start - self._spec.left),
            start=start,
            stop=stop,
            end=min(self._have, stop + self._spec.right),
            final=self._ended and stop == self._have,
        )
