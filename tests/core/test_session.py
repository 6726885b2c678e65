"""The session: scripted streams with every number pinned, and what must hold whatever happens in whatever order."""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from legato.core.chunker import ChunkSpec
from legato.core.engine import EngineInfo
from legato.core.events import NO_AUDIO, Audio, Boundary, Done, Event, Failed, Mark, MarkKind, Pcm, Segment
from legato.core.playback import PlaybackModel
from legato.core.segmenter import PlainSegmenter
from legato.core.session import CANCELLED, NOTHING_TO_SPEAK, Delivery, Pauses, Session
from legato.core.trace import report

RATE = 1000  # a sample is a millisecond
START, END = MarkKind


def make(
    chunks: ChunkSpec | None = None, *, overlap: int = 0, speed: float = 1.0, now: float = 0.0, **delivery: Any
) -> Session:
    info = EngineInfo("test", RATE, (), overlap)
    segmenter = PlainSegmenter(first_min=8, hard_max=40)
    return Session(info, segmenter, Delivery(chunks or ChunkSpec.fixed(100), **delivery), now, speed=speed)


def pcm(samples: int, start: int = 0) -> Pcm:
    return np.arange(start, start + samples, dtype=np.float32)


def shown(events: Sequence[Event]) -> list[str]:
    """Events in short: `[` a segment's first sample is in the chunk, `]` its last one is."""
    out = []
    for event in events:
        match event:
            case Audio(start=start, span=span):
                flags = "[" * event.segment_start + "]" * event.segment_end
                out.append(f"{start}-{event.end} {span[0]}:{span[1]} {flags}".strip())
            case Mark():
                out.append(f"{'start' if event.kind is START else 'end'} {event.segment.index} @{event.at}")
            case Done():
                out.append(f"done {event.samples}")
            case Failed():
                out.append(f"failed {event.code}")
    return out


def samples(events: Sequence[Event]) -> Pcm:
    return np.concatenate([NO_AUDIO, *(event.pcm for event in events if isinstance(event, Audio))])


def speaking(text: str = "One, two. Three", chunks: ChunkSpec | None = None, **options: Any) -> Session:
    """A session whose first segments are with the engine."""
    session = make(chunks, **options)
    session.receive_text(text, 0.0)
    assert session.segments_to_speak()
    return session


# Scripted: every size, mark and time.

# (time, what happens, its value, what is sent then, the timer then); a time of None is that of the timer before.
Step = tuple[float | None, str, Any, list[str], float | None]

SCRIPTS: dict[str, tuple[Callable[[], Session], list[Step]]] = {
    "hydraulic chunks, speed 2, a silent segment": (
        lambda: make(ChunkSpec.hydraulic(150, 400, 50), speed=2.0),
        [
            (0.0, "text", "Hi you. Ok so. And.\n\nBye", [], None),
            (0.1, "audio", 30, [], None),
            (0.1, "audio", 0, [], None),
            # 110 samples are left and the player is dry at 0.15: in less than the margin of 100 ms, so they go too.
            (0.1, "audio", 130, ["start 0 @0", "0-50 0:7 [", "50-160 0:7"], None),
            (0.11, "audio", 40, [], 0.16),
            (0.12, "ended", None, [], 0.16),  # 40 samples are too few to part here
            (0.12, "ended", None, [], 0.16),  # silent: no mark, and no pause of its own
            (0.14, "audio", 200, ["end 0 @200", "start 2 @375", "160-560 0:19 []"], 0.56),
            (0.15, "ended", None, [], 0.56),
            (0.16, "end", None, [], 0.56),
            (0.2, "audio", 10, [], 0.56),
            (0.2, "ended", None, ["end 2 @575", "start 3 @925", "560-935 15:24 []", "end 3 @935", "done 935"], None),
        ],
    ),
    "a chunk over three segments": (
        lambda: make(ChunkSpec.fixed(200), pauses=Pauses(sentence=0.01)),
        [
            (0.0, "text", "A b. C d. E f.", [], 0.25),
            (0.0, "end", None, [], None),
            (0.0, "audio", 60, [], None),
            (0.0, "ended", None, [], None),
            (0.0, "audio", 70, [], None),
            (0.0, "ended", None, [], None),
            (
                *(0.0, "audio", 50),
                ["start 0 @0", "end 0 @60", "start 1 @70", "end 1 @140", "start 2 @150", "0-200 0:14 []"],
                None,
            ),
            (0.0, "ended", None, ["end 2 @200", "done 200"], None),
        ],
    ),
    "paced, a pause longer than two chunks": (
        lambda: make(ChunkSpec.fixed(300, 100), max_lead=0.3, pauses=Pauses(sentence=0.65)),
        [
            (0.0, "text", "A b. C d.", [], 0.25),
            (0.0, "end", None, [], None),
            (0.0, "audio", 500, ["start 0 @0", "0-100 0:4 [", "100-400 0:4"], 0.3),
            (0.0, "ended", None, [], 0.3),
            (0.05, "audio", 50, ["end 0 @500"], 0.1),
            (None, "time", None, ["400-700 0:4 ]"], 0.4),
            (None, "time", None, ["700-1000 0:4"], 0.9),
            (0.5, "ended", None, ["start 1 @1150"], 0.7),
            (None, "time", None, ["1000-1200 5:9 []", "end 1 @1200", "done 1200"], None),
        ],
    ),
    "held no longer than 50 ms, and never until the player is dry": (
        lambda: make(ChunkSpec.fixed(200, hold=0.05), margin=0.03, now=0.5),
        [
            (0.5, "text", "One two. Three", [], None),
            (1.0, "audio", 20, [], 1.05),
            (1.04, "time", None, [], 1.05),
            (None, "time", None, ["start 0 @0", "0-20 0:8 ["], None),
            (1.06, "audio", 30, ["20-50 0:8"], None),
            (1.065, "audio", 10, [], 1.07),
            (None, "time", None, ["50-60 0:8"], None),
            (1.5, "audio", 5, ["60-65 0:8"], None),  # it is dry
            (1.6, "fail", None, ["failed broken"], None),
        ],
    ),
    "held back, because what is before it cannot go yet": (
        lambda: make(ChunkSpec.fixed(100, hold=0.05), max_lead=0.1),
        [
            (0.0, "text", "One two. Three", [], None),
            (0.0, "audio", 450, ["start 0 @0", "0-100 0:8 [", "100-200 0:8"], 0.1),
            (None, "time", None, ["200-300 0:8"], 0.2),
            (0.15, "audio", 50, [], 0.2),
            (None, "time", None, ["300-400 0:8"], 0.3),  # the 50 samples of 0.0 became a whole chunk
            (None, "time", None, ["400-500 0:8"], None),
            (0.3, "cancel", None, ["failed cancelled"], None),
        ],
    ),
    "a first sentence shorter than the first chunk, and a writer who thinks": (
        lambda: make(ChunkSpec.hydraulic(150, 800)),
        [
            (0.0, "text", "Hi. W", [], None),
            (0.1, "audio", 120, [], None),
            (0.1, "ended", None, ["start 0 @0", "0-120 0:3 []"], None),
            (5.0, "text", "ell.", [], 5.25),
            (None, "time", None, [], None),  # the pause ends the sentence
            (5.3, "audio", 90, ["end 0 @120", "start 1 @470", "120-560 4:9 ["], None),
            (5.3, "ended", None, [], None),
            (9.0, "end", None, ["end 1 @560", "done 560"], None),
        ],
    ),
    "a chunk cannot be larger than what may wait": (
        lambda: make(ChunkSpec.fixed(800), high_water=0.2),
        [
            (0.0, "text", "One two. Three", [], None),
            (0.0, "audio", 199, [], None),
            (0.0, "audio", 101, ["start 0 @0", "0-300 0:8 ["], None),
            (0.0, "audio", 200, ["300-500 0:8"], None),
            (0.0, "audio", 199, [], 0.4),
        ],
    ),
    "an overlap: the last samples of a failed segment are good": (
        lambda: make(ChunkSpec.fixed(100), overlap=20),
        [
            (0.0, "text", "One two. Three four. Five", [], None),
            (0.0, "audio", 20, [], None),  # all of it may still change
            (0.0, "audio", 120, ["start 0 @0", "0-100 0:8 ["], None),
            (0.0, "ended", None, ["100-120 0:8 ]"], None),
            (
                *(0.0, "audio", 90),
                ["end 0 @120", "120-220 0:8", "220-320 0:8", "320-420 0:8", "start 1 @470", "420-520 9:20 ["],
                0.42,
            ),
            (0.0, "fail", None, ["520-560 9:20", "failed broken"], None),
        ],
    ),
}


def step(session: Session, what: str, value: Any, now: float) -> list[Segment]:
    match what:
        case "text":
            session.receive_text(value, now)
        case "end":
            session.receive_end(now)
        case "audio":
            session.receive_audio(pcm(value), now)
        case "ended":
            session.receive_segment_end(now)
        case "fail":
            session.receive_failure("broken", "It broke.", now)
        case "cancel":
            session.receive_cancel(now)
    return session.segments_to_speak()


@pytest.mark.parametrize(("begin", "steps"), SCRIPTS.values(), ids=SCRIPTS)
def test_script(begin: Callable[[], Session], steps: list[Step]) -> None:
    session, timer = begin(), None
    for at, what, value, sent, timer_then in steps:
        now = timer if at is None else at
        assert now is not None
        step(session, what, value, now)
        assert shown(session.events_to_send(now)) == sent
        timer = session.timer(now)
        assert timer == (None if timer_then is None else pytest.approx(timer_then))


def test_a_pause_of_the_writer_gives_a_segment_by_the_timer_alone() -> None:
    session = make()
    session.receive_text("Hello there.", 1.0)
    assert session.segments_to_speak() == []
    assert session.timer(1.0) == 1.25
    assert session.events_to_send(1.24) == []
    assert session.segments_to_speak() == []
    assert session.events_to_send(1.25) == []
    assert session.wants_audio
    assert session.segments_to_speak() == [Segment(0, "Hello there.", 0, 12, Boundary.SENTENCE)]
    assert session.segments_to_speak() == []  # each is given once
    assert session.timer(1.25) is None


def test_lead_deadline_and_demand() -> None:
    session = make(now=10.0, high_water=0.25, first_sound=0.4)
    assert not session.wants_audio
    session.receive_text("Hi. Y", 11.0)
    assert session.wants_audio
    assert session.backlog == 1
    assert session.lead(11.0) == -math.inf
    assert session.deadline(11.0) == 10.4
    session.receive_audio(pcm(80), 11.0)
    assert session.lead(12.0) == 0.08
    assert session.deadline(12.0) == 12.08
    session.receive_audio(pcm(169), 12.0)
    assert session.wants_audio
    session.receive_audio(pcm(1), 12.0)
    assert not session.wants_audio
    assert len(samples(session.events_to_send(12.0))) == 200
    assert session.wants_audio
    assert session.lead(12.1) == pytest.approx(0.15)
    assert session.deadline(12.1) == pytest.approx(12.25)
    assert session.deadline(13.0) == pytest.approx(13.05)  # it is dry, and 50 samples wait


def test_ready_is_whether_there_is_something_to_send() -> None:
    session = speaking(max_lead=0.05)
    assert not session.ready(0.0)
    session.receive_audio(pcm(210), 0.0)
    assert session.ready(0.0)
    session.events_to_send(0.0)
    assert not session.ready(0.04)
    assert session.ready(0.05)
    session.events_to_send(0.05)
    assert session.timer(0.05) == pytest.approx(0.15)
    assert not session.ready(0.14)
    assert session.ready(0.151)  # what is still filling, before the player is dry
    session.receive_cancel(0.151)
    assert session.ready(0.151)
    session.events_to_send(0.151)
    assert not session.ready(0.151)


def test_what_is_ready_is_sent_though_a_new_segment_is_found_at_the_same_time() -> None:
    session = make()
    session.receive_text("Hi. You.", 0.0)
    session.receive_audio(pcm(60), 0.1)
    session.receive_segment_end(0.1)
    assert session.ready(0.25)
    assert shown(session.events_to_send(0.25)) == ["start 0 @0", "0-60 0:3 []"]
    assert [segment.text for segment in session.segments_to_speak()] == ["Hi.", "You."]


@pytest.mark.parametrize("text", ["", " \n\n ", "?!...", "🙂"])
def test_nothing_to_speak(text: str) -> None:
    session = make()
    session.receive_text(text, 0.0)
    assert session.segments_to_speak() == []
    assert session.events_to_send(0.5) == []
    assert not session.over
    session.receive_end(1.0)
    session.receive_end(1.0)
    assert session.over
    assert not session.closed
    assert shown(session.events_to_send(1.0)) == [f"failed {NOTHING_TO_SPEAK}"]
    assert session.closed
    assert session.events_to_send(2.0) == []
    assert (session.trace.ended_at, session.trace.error, session.trace.cancelled) == (1.0, NOTHING_TO_SPEAK, False)


def test_nothing_was_speakable() -> None:
    session = speaking("One. Two")
    session.receive_segment_end(0.0)
    session.receive_end(0.0)
    assert len(session.segments_to_speak()) == 1
    assert session.events_to_send(0.0) == []
    session.receive_segment_end(0.0)
    assert shown(session.events_to_send(0.0)) == [f"failed {NOTHING_TO_SPEAK}"]


def test_the_end_of_the_text() -> None:
    session = make()
    session.receive_text("Hi", 0.0)
    session.receive_end(0.0)
    session.receive_end(0.0)
    assert len(session.segments_to_speak()) == 1
    with pytest.raises(ValueError, match="after the end of the text"):
        session.receive_text("more", 0.0)
    session.receive_audio(pcm(10), 0.5)
    session.receive_segment_end(0.5)
    session.receive_end(0.5)
    assert session.over
    assert shown(session.events_to_send(0.5)) == ["start 0 @0", "0-10 0:2 []", "end 0 @10", "done 10"]
    with pytest.raises(ValueError, match="after the end of the text"):
        session.receive_text("more", 0.5)
    trace = session.trace
    assert (trace.first_chunk_at, trace.chunks, trace.audible) == (0.5, [(0.5, 10)], 1)
    assert (trace.ended_at, trace.error, trace.cancelled) == (0.5, None, False)
    assert report(trace).ttfp == 0.5


def test_the_end_may_come_after_everything_is_spoken() -> None:
    session = speaking("Hi. ")
    session.receive_audio(pcm(130), 0.0)
    session.receive_segment_end(0.0)
    assert shown(session.events_to_send(0.0)) == ["start 0 @0", "0-100 0:3 [", "100-130 0:3 ]"]
    session.receive_end(1.0)
    assert shown(session.events_to_send(1.0)) == ["end 0 @130", "done 130"]  # no pause at the end


def everything_else(session: Session, now: float) -> None:
    """What a client and an engine that do not know yet may still say."""
    session.receive_text("More. And more. ", now)
    session.receive_audio(pcm(50), now)
    session.receive_segment_end(now)
    session.receive_failure("late", "Too late.", now)
    session.receive_end(now)
    session.receive_audio(pcm(50), now)
    with pytest.raises(ValueError, match="after the end of the text"):
        session.receive_text("More.", now)
    assert session.segments_to_speak() == []
    assert session.backlog == 0
    assert session.over
    assert not session.wants_audio


def test_cancel_forgets_what_is_not_sent() -> None:
    session = speaking("One. Two. Three", max_lead=0.05)
    session.receive_audio(pcm(250), 0.0)
    assert len(samples(session.events_to_send(0.0))) == 100
    session.receive_segment_end(0.0)
    session.receive_cancel(0.0)
    session.receive_cancel(0.0)
    assert session.lead(0.0) == 0.1
    everything_else(session, 0.0)
    assert shown(session.events_to_send(0.01)) == ["failed cancelled"]
    assert session.closed
    everything_else(make_closed(), 0.0)
    session.receive_cancel(0.02)
    assert session.events_to_send(0.02) == []
    assert session.timer(0.02) is None
    # When it was cancelled, not when someone took the last event.
    assert (session.trace.ended_at, session.trace.error, session.trace.cancelled) == (0.0, None, True)


def make_closed() -> Session:
    session = make()
    session.receive_cancel(0.0)
    assert shown(session.events_to_send(0.0)) == ["failed cancelled"]
    return session


@pytest.mark.parametrize("final", ["done 250", "failed broken"])
def test_cancel_replaces_an_end_that_is_not_sent(final: str) -> None:
    session = speaking("One.\nTwo", max_lead=0.05)
    session.receive_audio(pcm(250), 0.0)
    if final == "done 250":
        session.receive_end(0.0)
        session.receive_segment_end(0.0)
        session.receive_segment_end(0.0)
    else:
        session.receive_failure("broken", "It broke.", 0.0)
    assert session.over
    assert shown(session.events_to_send(0.0)) == ["start 0 @0", "0-100 0:4 ["]
    session.receive_cancel(0.0)
    assert shown(session.events_to_send(0.0)) == ["failed cancelled"]


def test_cancel_after_the_end_is_too_late() -> None:
    session = speaking("Hi.\n\n")
    session.receive_end(0.0)
    session.receive_audio(pcm(10), 0.0)
    session.receive_segment_end(0.0)
    assert shown(session.events_to_send(0.0))[-1] == "done 10"
    session.receive_cancel(0.0)
    assert session.events_to_send(0.0) == []
    assert not session.trace.cancelled


def test_failure_comes_after_what_is_made() -> None:
    session = speaking("One two. Three. ", max_lead=0.1)
    session.receive_audio(pcm(450), 0.0)
    session.receive_segment_end(0.0)
    session.receive_text("Hello there.", 0.0)  # at 0.25 its end would be certain, and must not wake anybody
    session.receive_failure("broken", "It broke.", 0.0)
    everything_else(session, 0.0)
    assert shown(session.events_to_send(0.0)) == ["start 0 @0", "0-100 0:8 [", "100-200 0:8"]
    for at, sent in {
        0.1: ["200-300 0:8"],
        0.2: ["300-400 0:8"],
        0.3: ["400-450 0:8 ]", "end 0 @450", "failed broken"],
    }.items():
        timer = session.timer(at - 0.1)
        assert timer == pytest.approx(at)
        assert timer is not None
        assert shown(session.events_to_send(timer)) == sent
    assert session.closed
    assert (session.trace.ended_at, session.trace.error, session.trace.cancelled) == (timer, "broken", False)


def test_failure_before_any_sound() -> None:
    session = make()
    session.receive_failure("broken", "It broke.", 0.0)
    session.receive_text("Not known yet to the client. ", 0.0)  # ignored, not refused
    assert session.segments_to_speak() == []
    assert session.events_to_send(0.0) == [Failed("broken", "It broke.")]


def test_the_end_of_a_segment_that_is_known_too_late_is_in_the_mark_only() -> None:
    session = speaking("Hi. Y")
    session.receive_audio(pcm(100), 0.0)
    assert shown(session.events_to_send(0.0)) == ["start 0 @0", "0-100 0:3 ["]  # more might have come
    session.receive_segment_end(0.0)
    session.receive_end(0.0)
    session.receive_segment_end(0.0)
    assert shown(session.events_to_send(0.0)) == ["end 0 @100", "done 100"]


def test_pauses() -> None:
    pauses = Pauses()
    assert [pauses.after(boundary) for boundary in Boundary] == [0.0, 0.12, 0.35, 0.7, 0.35]
    for name in ("phrase", "clause", "sentence", "paragraph"):
        for value in (-0.1, math.inf, math.nan):
            with pytest.raises(ValueError, match="pause"):
                Pauses(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("high_water", [0.0, -1.0, math.nan]),
        ("max_lead", [-0.1, math.nan]),
        ("margin", [-0.1, math.nan]),
        ("first_sound", [-0.1, math.nan]),
    ],
)
def test_limits_with_which_nothing_would_come(name: str, values: list[float]) -> None:
    for value in values:
        with pytest.raises(ValueError, match=name):
            make(**{name: value})


# Whatever happens.

PAUSES = {
    Boundary.PHRASE: 0.01,
    Boundary.CLAUSE: 0.03,
    Boundary.SENTENCE: 0.07,
    Boundary.PARAGRAPH: 0.3,
    Boundary.END: 0.07,
}


@st.composite
def specs(draw: st.DrawFn) -> ChunkSpec:
    maximum = draw(st.integers(1, 400))
    hold = draw(st.none() | st.floats(0, 0.3))
    return ChunkSpec(draw(st.integers(1, maximum)), draw(st.integers(1, maximum)), maximum, hold)


DELIVERIES = st.builds(
    Delivery,
    chunks=specs(),
    high_water=st.floats(0.001, 1),
    max_lead=st.none() | st.floats(0, 0.6),
    first_sound=st.floats(0, 1),
    margin=st.floats(0, 0.2),
    pauses=st.just(Pauses(0.01, 0.03, 0.07, 0.3)),
)

TEXTS = [
    *("Hello there. Good. ", "One, two, or more, ", "Yes.\n\nNo. ", "no end in sight, however long it is "),
    *("x", ". ", "\n\n", " ", "?!", ""),
]
ACTION = st.one_of(
    st.tuples(st.just("text"), st.sampled_from(TEXTS)),
    st.tuples(st.just("audio"), st.integers(1, 250)),
    st.tuples(st.just("audio"), st.integers(0, 30)),
    st.tuples(st.just("wait"), st.floats(0, 0.5)),
    *(st.tuples(st.just(what), st.none()) for what in ("ended", "ended", "send", "timer")),
)
TEXT_FIRST = st.lists(ACTION, min_size=10, max_size=40).map(lambda actions: [("text", TEXTS[0]), *actions])
BLOWS = st.sampled_from(["end", "end", "send", "fail", "cancel"])


def overlap_add(blocks: list[Pcm], overlap: int) -> Pcm:
    """What the blocks of one segment are together, said in the plainest way."""
    rising = (np.arange(overlap, dtype=np.float32) + 0.5) / max(overlap, 1)
    out = NO_AUDIO
    for block in filter(len, blocks):
        over = overlap if len(out) else 0
        seam = out[len(out) - over :] * (1 - rising[:over]) + block[:over] * rising[:over]
        out = np.concatenate([out[: len(out) - over], seam, block[over:]])
    return out


@dataclass
class Placed:
    """Where a segment must lie."""

    segment: Segment
    start: int
    end: float  # inf while it is being spoken


class Run:
    """Drives a session as a shell does, and knows on its own what must come out."""

    def __init__(self, delivery: Delivery, overlap: int, speed: float) -> None:
        self.new = lambda: Session(
            EngineInfo("test", RATE, (), overlap), PlainSegmenter(8, 40, 0.25), delivery, 0.0, speed=speed
        )
        self.session = self.new()
        self.delivery, self.overlap, self.speed = delivery, overlap, speed
        self.now = 0.0
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.events: list[Event] = []
        self.player = PlaybackModel(RATE)
        self.text = ""
        self.at_engine: deque[Segment] = deque()
        self.blocks: list[Pcm] = []  # of the segment being spoken
        self.spoken: list[tuple[Segment, list[Pcm]]] = []
        self.ended = self.failed = self.cancelled = False
        self.largest = 0  # samples that one step of the engine has added, a pause included
        self.value = 0  # of the next sample

    # What may happen.

    def call(self, name: str, *args: Any) -> Any:
        self.ask()
        self.calls.append((name, args))
        return getattr(self.session, name)(*args)

    def ask(self) -> None:
        """Whoever asks whatever however often: nothing changes. `calls` is replayed without this."""
        session, now = self.session, self.now
        for _ in range(2):
            session.lead(now), session.deadline(now), session.timer(now), session.ready(now)
            assert session.wants_audio in (False, True)
            assert session.closed <= session.over
            assert session.backlog >= 0

    def do(self, what: str, value: Any = None) -> None:
        before = self.made
        match what:
            case "text" if not self.ended:
                self.text += value
                self.call("receive_text", value, self.now)
            case "end":
                self.ended = True
                self.call("receive_end", self.now)
            case "audio" if self.at_engine and self.session.wants_audio:
                size = max(value, self.overlap) if value else 0
                self.blocks.append(pcm(size, self.value))
                self.value += size
                self.call("receive_audio", self.blocks[-1], self.now)
            case "ended" if self.at_engine and self.session.wants_audio:
                self.spoken.append((self.at_engine.popleft(), self.blocks))
                self.blocks = []
                self.call("receive_segment_end", self.now)
            case "wait":
                self.now += value
            case "send":
                self.send()
            case "timer":
                self.follow_timer()
            case "fail":
                self.failed = self.failed or not self.session.over
                self.call("receive_failure", "broken", "It broke.", self.now)
            case "cancel":
                self.cancelled = self.cancelled or not self.session.closed
                self.call("receive_cancel", self.now)
        self.largest = max(self.largest, self.made - before)
        self.take_segments()
        self.check_state()

    def take_segments(self) -> list[Segment]:
        segments: list[Segment] = self.call("segments_to_speak")
        self.at_engine += segments
        if self.session.over:
            assert not segments
        return segments

    def send(self) -> list[Event]:
        ready = self.session.ready(self.now)
        before = len(self.events)
        events: list[Event] = self.call("events_to_send", self.now)
        assert ready == bool(events)
        for event in events:
            self.events.append(event)
            if isinstance(event, Audio):
                self.player.receive(len(event.pcm), self.now)
                if self.delivery.max_lead is not None:
                    limit = self.delivery.max_lead + self.delivery.chunks.maximum / RATE
                    assert self.player.lead(self.now) <= limit + 1e-9
        if self.cancelled and events:
            assert events == [Failed(CANCELLED, "The stream was cancelled.")]
            assert before + 1 == len(self.events)
        # There is nothing more, now or before the timer.
        timer = self.session.timer(self.now)
        assert timer is None or timer > self.now
        assert not self.session.ready(self.now)
        assert not self.session.ready(math.nextafter(timer, -math.inf) if timer is not None else self.now + 9)
        assert self.call("events_to_send", self.now) == []
        return events

    def follow_timer(self) -> bool:
        """Wait for the timer; False if there is none."""
        self.send()
        self.take_segments()
        timer = self.session.timer(self.now)
        if timer is None:
            return False
        self.now = timer
        events = self.send()
        assert self.take_segments() or events  # or it would spin
        return True

    def settle(self) -> None:
        """The engine speaks everything that it is asked for, and time passes until nothing comes any more."""
        while True:
            self.do("send")
            if self.at_engine and self.session.wants_audio:
                self.do("ended" if self.blocks else "audio", 90)
            elif not self.follow_timer():
                break

    # What must be.

    @property
    def placed(self) -> list[Placed]:
        return self.layout()[1]

    @property
    def made(self) -> int:
        """Samples that no later block can change."""
        held = self.overlap if any(map(len, self.blocks)) and not self.failed else 0
        out, placed = self.layout()
        return (
            len(out) - held if not held or len(out) - held > placed[-1].start else self.layout(open_too=False)[0].size
        )

    def layout(self, *, open_too: bool = True) -> tuple[Pcm, list[Placed]]:
        """The whole stream as far as it is known, and where its segments lie."""
        parts, placed, at, pause = list[Pcm](), list[Placed](), 0, 0
        speaking = [(self.at_engine[0], self.blocks)] if self.blocks and open_too else []
        for segment, blocks in [*self.spoken, *speaking]:
            audio = overlap_add(blocks, self.overlap)
            if len(audio):
                silence = np.zeros(pause, np.float32)
                parts += [silence, audio]
                start = at + pause
                at = start + len(audio)
                placed.append(Placed(segment, start, math.inf if blocks is self.blocks else at))
                pause = round(PAUSES[segment.boundary] / self.speed * RATE)
        return np.concatenate([NO_AUDIO, *parts]), placed

    def check_state(self) -> None:
        session, now = self.session, self.now
        assert session.over == (self.failed or self.cancelled or (self.ended and not self.at_engine))
        assert session.backlog == (0 if session.over else len(self.at_engine))
        sent = sum(len(event.pcm) for event in self.events if isinstance(event, Audio))
        waiting = 0 if self.cancelled else self.made - sent
        assert waiting <= self.delivery.high_water * RATE + self.largest + self.overlap  # of a failed segment
        full = waiting >= self.delivery.high_water * RATE
        assert session.wants_audio == (bool(self.at_engine) and not session.over and not full)
        if self.made and not self.cancelled:
            lead = self.player.lead(now) + waiting / RATE
            assert session.lead(now) == pytest.approx(lead)
            assert session.deadline(now) == pytest.approx(now + lead)
        elif not self.made:
            assert session.lead(now) == -math.inf
            assert session.deadline(now) == self.delivery.first_sound

    def check_events(self) -> None:
        stream, placed = self.layout()
        tolerance = 1e-5 if self.overlap else 0
        marks = [(START, at.start, at.segment) for at in placed] + [(END, at.end, at.segment) for at in placed]
        marks.sort(key=lambda mark: (mark[2].index, mark[1]))
        at, seen = 0, 0
        for event in self.events:
            match event:
                case Mark(kind, where, segment):
                    assert (kind, where, segment) == marks[seen]
                    assert where >= at
                    seen += 1
                case Audio():
                    assert event.start == at
                    assert 0 < len(event.pcm) <= self.delivery.chunks.maximum
                    at = event.end
                    np.testing.assert_allclose(event.pcm, stream[event.start : event.end], rtol=tolerance)
                    assert all(where >= at for _, where, _ in marks[seen:])
                    self.check_description(event, placed)
                case _:
                    assert event is self.events[-1]
        assert self.session.closed == bool(self.events and isinstance(self.events[-1], Done | Failed))
        if not self.session.closed:
            return
        whole, every = at == len(stream), [mark for mark in marks if mark[1] < math.inf]
        match self.events[-1]:
            case Done(total):
                assert total == at > 0
                assert whole
                assert seen == len(marks) == len(every)
                assert not self.failed
                assert not self.cancelled
            case Failed(code):
                expected = CANCELLED if self.cancelled else "broken" if self.failed else NOTHING_TO_SPEAK
                assert code == expected
                assert self.cancelled or (whole and seen == len(every))
                assert at == 0 or code != NOTHING_TO_SPEAK
        trace = self.session.trace
        assert trace.samples == at
        assert trace.cancelled == self.cancelled
        assert trace.ended_at is not None

    def check_description(self, chunk: Audio, placed: list[Placed]) -> None:
        begun = [at for at in placed if at.start < chunk.end]
        touched = [at for at in begun if at.end > chunk.start] or begun[-1:]
        assert chunk.span == (touched[0].segment.start, touched[-1].segment.end)
        assert chunk.segment_start == any(at.start >= chunk.start for at in touched)
        # Whether a segment ends with this chunk's last sample may not have been known when it was cut.
        assert chunk.segment_end >= any(chunk.start < at.end < chunk.end for at in placed)
        assert chunk.segment_end <= any(chunk.start < at.end <= chunk.end for at in placed)

    def check_that_asking_changed_nothing(self) -> None:
        twin, events = self.new(), list[Event]()
        for name, args in self.calls:
            result = getattr(twin, name)(*args)
            if name == "events_to_send":
                events += result
        assert shown(events) == shown(self.events)
        assert np.array_equal(samples(events), samples(self.events))
        assert twin.trace == self.session.trace


RUNS = st.builds(Run, DELIVERIES, st.sampled_from([0, 0, 1, 20]), st.sampled_from([0.5, 1.0, 3.0]))


@given(RUNS, TEXT_FIRST, BLOWS, st.lists(ACTION, max_size=10), BLOWS)
@settings(deadline=None)
def test_whatever_happens(
    run: Run, actions: list[tuple[str, Any]], blow: str, then: list[tuple[str, Any]], another: str
) -> None:
    for what, value in [*actions, (blow, None), *then, (another, None)]:
        run.do(what, value)
    run.settle()
    # The writer may think for ever: nothing that can be heard waits for the end of the text.
    if not run.cancelled:
        assert len(samples(run.events)) == run.made
    run.check_events()
    run.do("end")
    run.settle()
    run.check_events()
    assert run.session.closed
    run.check_that_asking_changed_nothing()


# Nothing that only concerns the transport may be heard.


def voice(segment: Segment) -> Pcm:
    """What a segment sounds like here; some are silent."""
    return NO_AUDIO if "x" in segment.text else pcm(23 * len(segment.text) % 300, 1000 * segment.start)


def cut(sequence: Any, at: list[float]) -> list[Any]:
    edges = [0, *sorted(round(share * len(sequence)) for share in at), len(sequence)]
    return [sequence[start:stop] for start, stop in pairwise(edges)]


@dataclass
class Handling:
    """How a text comes in, its audio is made, and is taken."""

    delivery: Delivery
    text_cuts: list[float]
    block_cuts: list[float]
    patience: list[float]  # seconds between two looks into the outbox, in turn

    def run(self, text: str) -> list[Event]:
        session = Session(EngineInfo("test", RATE, ()), PlainSegmenter(8, 40), self.delivery, 0.0)
        for part in cut(text, self.text_cuts):
            session.receive_text(part, 0.0)
        session.receive_end(0.0)
        segments = session.segments_to_speak()
        blocks = deque([*cut(voice(segment), self.block_cuts), None] for segment in segments)
        events, now, look = list[Event](), 0.0, 0
        while not session.closed:
            while session.wants_audio:
                block = blocks[0].pop(0)
                if block is None:
                    blocks.popleft()
                    session.receive_segment_end(now)
                else:
                    session.receive_audio(block, now)
            timer = session.timer(now)
            now += self.patience[look % len(self.patience)]
            look += 1
            if timer is not None:
                now = max(now, timer)
            events += session.events_to_send(now)
        return events


SHARES = st.lists(st.floats(0, 1), max_size=6)
HANDLINGS = st.builds(Handling, DELIVERIES, SHARES, SHARES, st.lists(st.floats(0, 1), min_size=1, max_size=3))


@given(st.lists(st.sampled_from(TEXTS), max_size=8).map("".join), HANDLINGS, HANDLINGS)
@settings(deadline=None)
def test_the_samples_do_not_depend_on_the_handling(text: str, one: Handling, other: Handling) -> None:
    first, second = one.run(text), other.run(text)
    assert np.array_equal(samples(first), samples(second))
    assert [e for e in first if isinstance(e, Mark)] == [e for e in second if isinstance(e, Mark)]
    assert first[-1] == second[-1]


@given(specs(), st.lists(st.integers(0, 300), max_size=8), st.lists(SHARES, min_size=8, max_size=8))
@settings(deadline=None)
def test_without_limits_of_time_the_chunks_do_not_depend_on_the_blocks(
    spec: ChunkSpec, lengths: list[int], cuts: list[list[float]]
) -> None:
    """Taken at the end only: nothing is given early, so the policy alone decides where chunks end."""
    results = []
    for share in ([[]] * 8, cuts):
        session = speaking("A b. " * 8, ChunkSpec(spec.first, spec.minimum, spec.maximum), high_water=math.inf)
        for length, at in zip(lengths, share, strict=False):
            for block in cut(pcm(length), at):
                session.receive_audio(block, 0.0)
            session.receive_segment_end(0.0)
        session.receive_failure("broken", "It broke.", 0.0)
        results.append(shown([e for e in session.events_to_send(0.0) if not isinstance(e, Mark)]))
    assert [r.rstrip("[] ") for r in results[0]] == [r.rstrip("[] ") for r in results[1]]
