"""WAV: a RIFF header of 44 bytes, then 16-bit PCM.

A stream's length is not known when its header leaves. Both sizes are then 0xFFFFFFFF, which players and `ffmpeg` read
as "until the end"; 0 would be read as an empty file. A whole file has exact sizes. Samples are two bytes, so the data
chunk is always even and needs no padding byte.
"""

import struct
from typing import Final

from legato.core.events import Pcm
from legato.wire.pcm import SAMPLE_BYTES, s16le

HEADER_BYTES: Final = 44
_UNKNOWN: Final = 0xFFFFFFFF
_AFTER_SIZE: Final = HEADER_BYTES - 8  # the RIFF size does not count itself and the tag before it
_FORMAT_PCM: Final = 1
_CHANNELS: Final = 1


def wav_header(sample_rate: int, samples: int | None = None) -> bytes:
    """Return the header of a mono file of `samples` samples; None if nobody knows how many.

    A length that 32 bits cannot hold (a day of speech) is written as unknown.
    """
    data_bytes = _UNKNOWN if samples is None else samples * SAMPLE_BYTES
    if data_bytes + _AFTER_SIZE >= _UNKNOWN:
        riff_bytes = data_bytes = _UNKNOWN
    else:
        riff_bytes = data_bytes + _AFTER_SIZE
    frame_bytes = _CHANNELS * SAMPLE_BYTES
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        riff_bytes,
        b"WAVE",
        b"fmt ",
        16,  # bytes of this chunk
        _FORMAT_PCM,
        _CHANNELS,
        sample_rate,
        sample_rate * frame_bytes,
        frame_bytes,
        SAMPLE_BYTES * 8,
        b"data",
        data_bytes,
    )


class WavEncoder:
    """A WAV file, piece by piece."""

    mime = "audio/wav"

    def __init__(self, sample_rate: int) -> None:
        self._sample_rate = sample_rate

    @classmethod
    def whole(cls, pcm: Pcm, sample_rate: int) -> bytes:
        """Return a complete file with exact sizes."""
        return wav_header(sample_rate, len(pcm)) + s16le(pcm)

    def header(self, samples: int | None = None) -> bytes:
        """Return the 44 bytes before the audio."""
        return wav_header(self._sample_rate, samples)

    def push(self, pcm: Pcm) -> bytes:
        """Encode the next samples."""
        return s16le(pcm)

    def flush(self) -> bytes:
        """Nothing: no sample is held back."""
        return b""
