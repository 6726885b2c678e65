"""PCM and WAV: exact rounding, no wrapping, whole frames, and bytes that do not depend on how the audio was cut."""

import io
import struct
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.core.events import NO_AUDIO, Pcm
from legato.wire.format import DEFAULT_FORMAT, FORMATS
from legato.wire.pcm import from_s16le, s16le
from legato.wire.wav import HEADER_BYTES, WavEncoder, wav_header

RATE = 24000


def pcm(*values: float) -> Pcm:
    return np.array(values, np.float32)


def numbers(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 2}h", data))


def test_full_scale_saturates_and_never_wraps() -> None:
    assert numbers(s16le(pcm(1.0, -1.0, 1.5, -1.5, 0.0, -0.0))) == [32767, -32768, 32767, -32768, 0, 0]


def test_rounding_is_to_the_nearest() -> None:
    step = 1 / 32768
    values = pcm(0.4 * step, 0.6 * step, -0.4 * step, -0.6 * step, 0.5 * step, 1.5 * step, 32766.4 * step)
    assert numbers(s16le(values)) == [0, 1, 0, -1, 0, 2, 32766]


def test_every_value_survives() -> None:
    every = np.arange(-32768, 32768, dtype="<i2").tobytes()
    assert s16le(from_s16le(every)) == every
    assert from_s16le(every).min() == -1.0


def test_the_input_is_left_alone() -> None:
    given = pcm(0.5, 2.0)
    given.flags.writeable = False
    s16le(given)
    assert given.tolist() == [0.5, 2.0]


def test_half_a_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="3 bytes"):
        from_s16le(b"abc")


def test_nothing_is_nothing() -> None:
    assert s16le(NO_AUDIO) == b""
    assert len(from_s16le(b"")) == 0


def test_streamed_header() -> None:
    header = wav_header(RATE)
    assert len(header) == HEADER_BYTES
    assert header[4:8] == header[40:44] == b"\xff\xff\xff\xff"


@pytest.mark.parametrize("samples", [0, 1, 24000])
def test_whole_file(samples: int) -> None:
    data = WavEncoder.whole(np.full(samples, 0.5, np.float32), RATE)
    assert struct.unpack("<I", data[4:8])[0] == len(data) - 8
    with wave.open(io.BytesIO(data)) as file:
        assert file.getparams()[:4] == (1, 2, RATE, samples)
        assert file.readframes(samples) == data[HEADER_BYTES:]


def test_a_length_beyond_32_bits_is_written_as_unknown() -> None:
    largest = (0xFFFFFFFE - 36) // 2
    assert wav_header(RATE, largest)[40:44] != b"\xff\xff\xff\xff"
    assert wav_header(RATE, largest + 1) == wav_header(RATE)


def test_the_registry_knows_the_types() -> None:
    assert DEFAULT_FORMAT in FORMATS
    assert {name: FORMATS[name](16000).mime for name in FORMATS} == {
        "wav": "audio/wav",
        "pcm": "audio/pcm;rate=16000;channels=1",
    }


@pytest.mark.parametrize("name", FORMATS)
@given(values=st.lists(st.floats(-1.25, 1.25, width=32), max_size=60), cuts=st.lists(st.integers(0, 60), max_size=6))
def test_cutting_changes_nothing(name: str, values: list[float], cuts: list[int]) -> None:
    audio = pcm(*values)
    whole = FORMATS[name](RATE)
    expected = whole.header() + whole.push(audio) + whole.flush()
    parts = FORMATS[name](RATE)
    edges = sorted(min(cut, len(audio)) for cut in cuts)
    pieces = [parts.push(audio[a:b]) for a, b in zip([0, *edges], [*edges, len(audio)], strict=True)]
    assert all(len(piece) % 2 == 0 for piece in pieces)
    assert parts.header() + b"".join(pieces) + parts.flush() == expected


@given(st.floats(-1, 1, width=32))
def test_the_error_is_half_a_step_at_most(value: float) -> None:
    back = float(from_s16le(s16le(pcm(value)))[0])
    assert abs(back - value) <= (0.5 if value < 1 - 0.5 / 32768 else 1) / 32768
