"""What flows through the pipeline. Every stage takes these and gives these.

text ──► Segment ──► Pcm blocks ──► Audio, Mark ──► Done | Failed

Positions are integer samples from the start of the stream; text offsets are code points from the start of
everything the client sent. Durations are derived from them, never from bytes or from wall time.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Pcm = NDArray[np.float32]
"""Mono audio, float32 in [-1, 1], shape (samples,)."""

NO_AUDIO: Pcm = np.zeros(0, np.float32)
NO_AUDIO.flags.writeable = False


class Boundary(StrEnum):
    """What ended a segment; it decides the pause that follows."""

    PHRASE = "phrase"  # a length limit or a pause of the writer, in the middle of a sentence
    CLAUSE = "clause"
    SENTENCE = "sentence"
    PARAGRAPH = "paragraph"
    END = "end"  # the text ended


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of text that an engine speaks in one go.

    `text` is `received[start:end]` with the surrounding white space removed.
    """

    index: int
    text: str
    start: int = 0
    end: int = 0
    boundary: Boundary = Boundary.SENTENCE


@dataclass(frozen=True, slots=True)
class Audio:
    """A deliverable chunk: samples [start, start + len(pcm)) of the stream."""

    start: int
    pcm: Pcm
    span: tuple[int, int]  # the text that the segments in this chunk stand for
    segment_start: bool  # a segment's first sample is in this chunk
    segment_end: bool  # a segment's last sample was known to be in this chunk when it was cut; the Mark is exact

    @property
    def end(self) -> int:
        """Position of the first sample after this chunk."""
        return self.start + len(self.pcm)


class MarkKind(StrEnum):
    """Which edge of a segment a `Mark` stands at."""

    SEGMENT_START = "segment_start"
    SEGMENT_END = "segment_end"


@dataclass(frozen=True, slots=True)
class Mark:
    """A segment starts or ends at sample `at`. Sent before the audio that starts at `at`."""

    kind: MarkKind
    at: int
    segment: Segment


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing follows. `samples` is the length of the whole stream."""

    samples: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The stream ends early; `code` is stable and documented in `legato.errors`."""

    code: str
    message: str


Event = Audio | Mark | Done | Failed
