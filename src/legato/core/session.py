"""One stream, without I/O: text and samples go in, segments and events come out.

    receive_text ─► segmenter ─► segments_to_speak()          the shell gives them to the engine, in order
    receive_audio ─► stitcher ─► pauses ─► chunker ─► outbox ─► events_to_send(now)

A shell (asyncio service, simulator, test) calls `receive_*` when something happened, then drains
`segments_to_speak()` and `events_to_send(now)`, then waits until `timer(now)` or news. Nothing here blocks: the engine
is bounded by not being asked (`wants_audio`), the client by what `events_to_send` is willing to give.

`now` is in seconds on one monotonic clock; positions are samples.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from legato.core.chunker import Chunker, ChunkSpec
from legato.core.engine import EngineInfo
from legato.core.events import Audio, Boundary, Done, Event, Failed, Mark, MarkKind, Pcm, Segment
from legato.core.playback import PlaybackModel
from legato.core.segmenter import Segmenter
from legato.core.stitcher import Stitcher
from legato.core.trace import Trace

CANCELLED = "cancelled"
NOTHING_TO_SPEAK = "nothing_to_speak"


@dataclass(frozen=True, slots=True)
class Pauses:
    """Silence between two segments, in seconds at speed 1, by what ended the first. Divided by the speed, once."""

    phrase: float = 0.0
    clause: float = 0.12
    sentence: float = 0.35
    paragraph: float = 0.7

    def __post_init__(self) -> None:
        if not all(0 <= value < math.inf for value in (self.phrase, self.clause, self.sentence, self.paragraph)):
            raise ValueError("a pause cannot be negative or endless")

    def after(self, boundary: Boundary) -> float:
        """Seconds of silence after a segment that ended so, if another one follows."""
        return {
            Boundary.PHRASE: self.phrase,
            Boundary.CLAUSE: self.clause,
            Boundary.SENTENCE: self.sentence,
            Boundary.PARAGRAPH: self.paragraph,
            Boundary.END: self.sentence,
        }[boundary]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How audio reaches the listener. Seconds.

    Attributes:
        chunks: how the audio is cut.
        high_water: the engine is not asked for more while this much is made and not yet sent.
        max_lead: never send more than this ahead of the listener's player; None sends as fast as it is taken.
        first_sound: by when a new stream should sound, after its request: its deadline until then.
        margin: a chunk that is still filling is given early when the listener would run dry within this time.
        pauses: silence between segments.

    Raises:
        ValueError: with these limits nothing would ever be made or sent.
    """

    chunks: ChunkSpec
    high_water: float = 10.0
    max_lead: float | None = None
    first_sound: float = 0.4
    margin: float = 0.1
    pauses: Pauses = field(default_factory=Pauses)

    def __post_init__(self) -> None:
        if not self.high_water > 0:
            raise ValueError(f"high_water must be positive, got {self.high_water} seconds")
        if not (self.max_lead is None or self.max_lead >= 0):
            raise ValueError(f"max_lead cannot be negative, got {self.max_lead} seconds")
        if not (self.margin >= 0 and self.first_sound >= 0):
            raise ValueError(f"margin and first_sound cannot be negative: {self.margin}, {self.first_sound} seconds")


@dataclass(slots=True)
class _Spoken:
    """Where a segment lies in the stream, in samples. `end` is None while it is being spoken."""

    segment: Segment
    start: int
    end: int | None = None


class Session:
    """The state of one stream.

    Args:
        info: of the engine that will speak.
        segmenter: cuts the text; this session owns it.
        delivery: how audio is delivered.
        now: when the stream was requested.
        speed: of the voice; pauses are divided by it.
    """

    def __init__(
        self, info: EngineInfo, segmenter: Segmenter, delivery: Delivery, now: float, *, speed: float = 1.0
    ) -> None:
        self._rate = info.sample_rate
        self._delivery = delivery
        self._speed = speed
        self._segmenter = segmenter
        self._stitcher = Stitcher(info.overlap)
        self._chunker = Chunker(delivery.chunks)
        self._player = PlaybackModel(info.sample_rate)
        self._requested_at = now
        self._new: deque[Segment] = deque()  # not yet handed to the engine
        self._open: deque[Segment] = deque()  # handed over or new, not yet spoken to the end
        self._spoken: deque[_Spoken] = deque()  # those that a chunk to come may touch
        self._marks: deque[Mark] = deque()
        self._outbox: deque[Audio | Mark] = deque()
        self._outbox_samples = 0
        self._made = 0  # samples given to the chunker, pauses included
        self._cut = 0  # samples that have left the chunker
        self._sent = 0
        self._pause = 0  # samples of silence owed before the next segment's first sample
        self._text_ended = False
        self._final: Done | Failed | None = None
        self._closed = False
        self.trace = Trace(info.sample_rate, requested_at=now)

    # What happened, told by the client's side.

    def receive_text(self, text: str, now: float) -> None:
        """More text to speak. Ignored once the stream is over.

        Raises:
            ValueError: the text had already ended.
        """
        if self._text_ended:
            raise ValueError("text after the end of the text")
        if self._final is None:
            self._queue(self._segmenter.push(text, now))

    def receive_end(self, now: float) -> None:
        """No more text will come; told twice is told once."""
        if not self._text_ended and self._final is None:
            self._queue(self._segmenter.flush(now))
            self._text_ended = True
            self._finish_if_spoken(now)
        self._text_ended = True

    def receive_cancel(self, now: float) -> None:
        """The listener left or spoke over us: forget everything that is not yet sent. Too late after the end."""
        if not self._closed:
            self._drop()
            self._outbox.clear()
            self._outbox_samples = 0
            self._final = Failed(CANCELLED, "The stream was cancelled.")
            if not self.trace.cancelled:
                self.trace.end(now, cancelled=True)

    # What happened, told by the engine's side.

    def receive_audio(self, pcm: Pcm, now: float) -> None:
        """A block of the segment being spoken, the first of `segments_to_speak()` not yet ended; it may be empty."""
        if self._final is None and len(pcm):
            self._make(self._stitcher.push(pcm), now)

    def receive_segment_end(self, now: float) -> None:
        """The segment being spoken is complete."""
        if self._final is not None:
            return
        self._make(self._stitcher.flush(), now)
        segment = self._open.popleft()
        if self._spoken and self._spoken[-1].end is None:
            self._spoken[-1].end = self._made
            self._marks.append(Mark(MarkKind.SEGMENT_END, self._made, segment))
            self._pause = round(self._delivery.pauses.after(segment.boundary) / self._speed * self._rate)
            self._send(self._chunker.boundary(now), now)
        self._finish_if_spoken(now)

    def receive_failure(self, code: str, message: str, now: float) -> None:
        """The engine failed: what is already made is still sent, then the failure."""
        if self._final is None:
            self._make(self._stitcher.flush(), now)
            self._flush(now)
            self._drop()
            self._final = Failed(code, message)

    # To do.

    def segments_to_speak(self) -> list[Segment]:
        """Segments for the engine, in order; each is given once."""
        out = list(self._new)
        self._new.clear()
        return out

    def events_to_send(self, now: float) -> list[Event]:
        """Everything that may be sent at `now`. It counts as sent."""
        self._tick(now)
        out: list[Event] = []
        while self._outbox and (isinstance(self._outbox[0], Mark) or self._room(now)):
            event = self._outbox.popleft()
            if isinstance(event, Audio):
                self._outbox_samples -= len(event.pcm)
                self._sent = event.end
                self._player.receive(len(event.pcm), now)
                self.trace.chunk(event.pcm, now)
            out.append(event)
            if not self._outbox:
                self._tick(now)  # what was sent may be too little to wait for a whole chunk
        if self._final is not None and not self._outbox and not self._closed:
            out += self._close(now)
        return out

    # To ask. Asking changes nothing.

    @property
    def wants_audio(self) -> bool:
        """Whether the engine should work on this stream now."""
        return bool(self._open) and self._final is None and not self._full

    @property
    def closed(self) -> bool:
        """True once the last event has been taken."""
        return self._closed

    @property
    def over(self) -> bool:
        """True once it is decided how the stream ends: nothing more is taken, what is made may still be sent."""
        return self._final is not None

    @property
    def backlog(self) -> int:
        """Segments waiting to be spoken or being spoken."""
        return len(self._open)

    def lead(self, now: float) -> float:
        """Seconds until the listener runs dry, counting what is made and not yet sent; -inf before the first sample."""
        if not self._made:
            return -math.inf
        return self._player.lead(now) + self._waiting / self._rate

    def deadline(self, now: float) -> float:
        """By when the next audio must be made: when the listener runs dry, or the first-sound target until it plays."""
        if not self._made:
            return self._requested_at + self._delivery.first_sound
        return now + self.lead(now)

    def timer(self, now: float) -> float | None:
        """When `events_to_send` would next give something, or new segments be ready, by the passing of time alone."""
        if self._closed:
            return None
        times = [self._early(now)]
        if self._final is None:
            times.append(self._segmenter.timer())
        if self._outbox and not self._room(now):
            times.append(self._room_at(now))
        return min((time for time in times if time is not None), default=None)

    def ready(self, now: float) -> bool:
        """Whether `events_to_send(now)` would give something."""
        if self._outbox:
            return isinstance(self._outbox[0], Mark) or self._room(now)
        early = self._early(now)
        return (early is not None and early <= now) or (self._final is not None and not self._closed)

    # Inside.

    @property
    def _waiting(self) -> int:
        """Samples made and not yet sent."""
        return self._outbox_samples + self._chunker.waiting

    @property
    def _full(self) -> bool:
        return self._waiting >= self._delivery.high_water * self._rate

    def _room(self, now: float) -> bool:
        return self._room_at(now) <= now

    def _room_at(self, now: float) -> float:
        """From when on another chunk may be sent. Absolute, so that a timer set for it finds it come, to the bit."""
        return self._player.dry_time(now) - (math.inf if self._delivery.max_lead is None else self._delivery.max_lead)

    def _early(self, now: float) -> float | None:
        """When a chunk that is still filling goes as it is; None: when it is full, not by the passing of time.

        Never while others are before it or there is no room: it would be small and no sooner there. Otherwise when
        it was held for long enough, when the listener is about to run dry, or when nobody is at work to fill it.
        """
        if self._outbox or not self._chunker.waiting:
            return None
        times = [self._chunker.timer()]
        if self._sent:
            times.append(self._player.dry_time(now) - self._delivery.margin)
        if self._full or not (self._sent or self._open):
            times.append(now)
        due = min((time for time in times if time is not None), default=None)
        return None if due is None else max(due, self._room_at(now))

    def _tick(self, now: float) -> None:
        if self._final is not None:
            return
        early = self._early(now)
        if early is not None and early <= now:
            self._send(self._chunker.release(), now)
        self._queue(self._segmenter.tick(now))

    def _queue(self, segments: list[Segment]) -> None:
        self._new += segments
        self._open += segments

    def _make(self, pcm: Pcm, now: float) -> None:
        """Samples of the segment being spoken, joined to the stream."""
        if not len(pcm):
            return
        if not self._spoken or self._spoken[-1].end is not None:
            if self._pause:
                self._append(np.zeros(self._pause, np.float32), now)
                self._pause = 0
            self._spoken.append(_Spoken(self._open[0], self._made))
            self._marks.append(Mark(MarkKind.SEGMENT_START, self._made, self._open[0]))
        self._append(pcm, now)

    def _append(self, pcm: Pcm, now: float) -> None:
        self._made += len(pcm)
        self._send(self._chunker.push(pcm, now), now)

    def _send(self, chunks: list[Pcm], now: float) -> None:
        for pcm in chunks:
            self.trace.chunk_ready(now)
            chunk = self._describe(pcm)
            self._cut = chunk.end
            while self._marks and self._marks[0].at < chunk.end:
                self._outbox.append(self._marks.popleft())
            self._outbox.append(chunk)
            self._outbox_samples += len(pcm)

    def _describe(self, pcm: Pcm) -> Audio:
        """Say which text the samples [cut, cut + len) stand for."""
        start, end = self._cut, self._cut + len(pcm)
        while self._spoken[0].end is not None and self._spoken[0].end <= start and len(self._spoken) > 1:
            self._spoken.popleft()
        inside = [spoken for spoken in self._spoken if spoken.start < end]
        touched = [spoken for spoken in inside if spoken.end is None or spoken.end > start] or inside[-1:]
        return Audio(
            start=start,
            pcm=pcm,
            span=(touched[0].segment.start, touched[-1].segment.end),
            segment_start=any(start <= spoken.start for spoken in touched),
            segment_end=any(spoken.end is not None and start < spoken.end <= end for spoken in touched),
        )

    def _flush(self, now: float) -> None:
        """Send what is made, and the marks at its end."""
        self._send(self._chunker.flush(), now)
        self._outbox += self._marks
        self._marks.clear()

    def _drop(self) -> None:
        """Forget the text and the samples that have not left the chunker."""
        self._chunker.flush()
        self._new.clear()
        self._open.clear()
        self._marks.clear()

    def _finish_if_spoken(self, now: float) -> None:
        if self._text_ended and not self._open and self._final is None:
            self._flush(now)
            if self._made:
                self._final = Done(self._made)
            else:
                self._final = Failed(NOTHING_TO_SPEAK, "The text holds nothing that this voice can pronounce.")

    def _close(self, now: float) -> list[Event]:
        assert self._final is not None
        self._closed = True
        if isinstance(self._final, Done):
            self._player.end(now)
            self.trace.end(now)
        elif not self.trace.cancelled:
            self.trace.end(now, error=self._final.code)
        return [self._final]
