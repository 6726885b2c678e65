"""What flows through the pipeline cannot be changed on its way."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from legato.core.events import NO_AUDIO, Audio, Boundary, Done, Failed, Mark, MarkKind, Segment

SEGMENT = Segment(0, "Hi.", 0, 3)
AUDIO = Audio(start=30, pcm=np.zeros(12, np.float32), span=(0, 3), segment_start=True, segment_end=False)


def test_audio_ends_after_its_last_sample() -> None:
    assert AUDIO.end == 42
    assert Audio(7, NO_AUDIO, (0, 0), False, False).end == 7


@pytest.mark.parametrize(
    "value", [SEGMENT, AUDIO, Mark(MarkKind.SEGMENT_END, 42, SEGMENT), Done(42), Failed("code", "Say what to do.")]
)
def test_frozen(value: Any) -> None:
    for field in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, getattr(value, field.name))
    assert not hasattr(value, "__dict__")


def test_no_audio_is_shared_and_read_only() -> None:
    assert NO_AUDIO.shape == (0,)
    assert NO_AUDIO.dtype == np.float32
    assert not NO_AUDIO.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        NO_AUDIO[:] = 1


def test_names_on_the_wire() -> None:
    assert [str(boundary) for boundary in Boundary] == ["phrase", "clause", "sentence", "paragraph", "end"]
    assert [str(kind) for kind in MarkKind] == ["segment_start", "segment_end"]
    assert SEGMENT.boundary is Boundary.SENTENCE
