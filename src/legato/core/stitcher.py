r"""Joins the blocks of one segment: untouched where the engine is exact, with a crossfade where it is not.

A sample that two blocks claim is faded from the first to the second:

    block k      ────────────╲
                              ╳     gains: fade out + fade in == 1.0 at every sample
    block k+1                ╱────────────
                             |-| overlap
"""

from typing import Literal

import numpy as np

from legato.core.events import NO_AUDIO, Pcm

Fade = Literal["linear", "hann"]


class Stitcher:
    """Overlap-add of blocks whose first `overlap` samples stand for the same time as the last ones of the block before.

    With `overlap == 0` a block is returned as it came: no copy, no delay. Otherwise the last `overlap` samples are
    held until the next block or `flush`. n non-empty blocks give `sum(lengths) - overlap * (n - 1)` samples; a
    constant stays exactly that constant. Blocks must not be written to after they were pushed.

    Args:
        overlap: samples.
        fade: "linear", or "hann" (the rising half of a Hann window).

    Raises:
        ValueError: `overlap` is negative or `fade` unknown.
    """

    def __init__(self, overlap: int, fade: Fade = "linear") -> None:
        if overlap < 0:
            raise ValueError(f"overlap cannot be negative, got {overlap} samples")
        if fade not in ("linear", "hann"):
            raise ValueError(f'fade must be "linear" or "hann", got "{fade}"')
        self._overlap = overlap
        self._fade_in, self._fade_out = _gains(overlap, fade)
        self._tail: Pcm | None = None

    def push(self, block: Pcm) -> Pcm:
        """Add a block, shape (samples,); return what no later block can change.

        An empty block changes nothing. A block shorter than twice the overlap is faded at both ends at once.

        Raises:
            ValueError: the block is not empty and shorter than the overlap.
        """
        n = self._overlap
        if n == 0:
            return block
        if len(block) == 0:
            return NO_AUDIO
        if len(block) < n:
            raise ValueError(f"a block of {len(block)} samples cannot overlap its neighbour by {n}")
        cut = len(block) - n
        if self._tail is None:
            self._tail = block[cut:]
            return block[:cut]
        joined = np.array(block, dtype=np.float32)
        joined[:n] *= self._fade_in
        joined[:n] += self._tail * self._fade_out
        self._tail = joined[cut:]
        return joined[:cut]

    def flush(self) -> Pcm:
        """Return the held samples, not faded: nothing follows them. The next block starts a new segment."""
        tail, self._tail = self._tail, None
        return NO_AUDIO if tail is None else tail


def _gains(overlap: int, fade: Fade) -> tuple[Pcm, Pcm]:
    """Return the rising and the falling gain, each of shape (overlap,)."""
    ramp = (np.arange(overlap) + 0.5) / max(overlap, 1)
    rising = ramp if fade == "linear" else np.sin(0.5 * np.pi * ramp) ** 2
    # On a grid of 2**-24 both gains are float32 numbers, so their sum has no rounding.
    fade_in = (np.round(rising * 2.0**24) / 2.0**24).astype(np.float32)
    fade_out = np.float32(1) - fade_in
    assert np.all(fade_in + fade_out == 1)
    assert np.all(np.diff(fade_out) <= 0)
    return fade_in, fade_out
