"""Noise that depends on where it is, not on how a stream was cut."""

import math

import numpy as np
from numpy.typing import NDArray

_UNIT = np.float32(2.0**-32)
_HALF = np.float32(0.5)
_LEAST = np.float32(2.0**-33)  # keeps the uniform out of 0, whose logarithm is infinite
_TURN = np.float32(np.pi * 2.0**-31)


class PolarNoise:
    """Complex standard normal noise, row after row, as magnitude and angle.

    Box and Muller's transform (1958) takes a fixed number of random words per sample, unlike the ziggurat of
    `numpy.random.Generator`, so row k always uses words [k * columns, (k + 1) * columns) of one PCG64DXSM sequence: the
    same row has the same noise whole, streamed, or resumed at `start`. Measured four times cheaper than
    `Generator.standard_normal` as well, since polar form is what the caller multiplies.
    """

    def __init__(self, key: tuple[int, ...], columns: int, *, start: int = 0) -> None:
        # Two words of 32 bits for each part, or a large seed could run into the part after it.
        words = [word for part in key for word in (part & 0xFFFFFFFF, part >> 32)]
        self._bits = np.random.PCG64DXSM(np.random.SeedSequence(words))
        self._columns = columns
        if start:
            self._bits.advance(start * columns)

    def take(self, rows: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The next rows: magnitude [rows, columns] >= 0 and angle [rows, columns] in radians.

        `magnitude * exp(1j * angle)` has independent N(0, 1) real and imaginary parts.
        """
        words = self._bits.random_raw(rows * self._columns).reshape(rows, self._columns)
        halves = words.view(np.int32).reshape(rows, self._columns, 2)
        magnitude = halves[..., 0].astype(np.float32)
        magnitude *= _UNIT
        magnitude += _HALF
        np.maximum(magnitude, _LEAST, out=magnitude)
        np.log(magnitude, out=magnitude)
        magnitude *= np.float32(-2)
        np.sqrt(magnitude, out=magnitude)
        angle = halves[..., 1].astype(np.float32)
        angle *= _TURN
        return magnitude, angle


class NormalNoise:
    """Real standard normal noise for tensors whose last axis is time.

    The numbers of a step depend on the key, on how many tensors were drawn before, and on the step's position, not on
    how many steps there are: a longer tensor begins like a shorter one.

    Args:
        key: equal keys give equal numbers.
    """

    def __init__(self, key: tuple[int, ...]) -> None:
        self._key = key
        self._drawn = 0

    def __call__(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """The next tensor, float32."""
        *channels, steps = shape
        width = math.prod(channels)
        magnitude, angle = PolarNoise((*self._key, self._drawn), (width + 1) // 2).take(steps)
        self._drawn += 1
        parts = np.concatenate([magnitude * np.cos(angle), magnitude * np.sin(angle)], axis=1)
        return np.ascontiguousarray(parts[:, :width].T).reshape(shape)
