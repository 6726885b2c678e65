"""Signed 16-bit little-endian samples, the payload of raw PCM and of WAV.

    float32  -1.0 ... +0.5 ... +1.0          s16 = round(float * 32768), saturated; float = s16 / 32768
    s16    -32768 ... 16384 ... 32767

The scale is a power of two, so the product is exact and rounding happens once (half to even, at most half a step).
+1.0 alone has no s16 number: it becomes 32767, never -32768. All 65536 values survive the way there and back.
"""

from typing import Final

import numpy as np

from legato.core.events import Pcm

SAMPLE_BYTES: Final = 2
_SCALE: Final = np.float32(32768)


def s16le(pcm: Pcm) -> bytes:
    """Encode samples, two bytes each. Values outside [-1, 1] saturate; they must be finite."""
    scaled = pcm * _SCALE
    np.rint(scaled, out=scaled)
    np.clip(scaled, -32768, 32767, out=scaled)
    return scaled.astype("<i2").tobytes()


def from_s16le(data: bytes) -> Pcm:
    """Decode what `s16le` wrote.

    Raises:
        ValueError: half a sample at the end.
    """
    if len(data) % SAMPLE_BYTES:
        raise ValueError(f"{len(data)} bytes are no whole number of 16-bit samples")
    return np.frombuffer(data, "<i2").astype(np.float32) / _SCALE


class PcmEncoder:
    """Raw samples without any header: who reads them must be told rate, channels and format."""

    def __init__(self, sample_rate: int) -> None:
        self.mime = f"audio/pcm;rate={sample_rate};channels=1"

    def header(self, samples: int | None = None) -> bytes:  # noqa: ARG002 - as every format takes it
        """Nothing."""
        return b""

    def push(self, pcm: Pcm) -> bytes:
        """Encode the next samples."""
        return s16le(pcm)

    def flush(self) -> bytes:
        """Nothing: no sample is held back."""
        return b""
