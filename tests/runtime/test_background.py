"""The service behind a thread: every end is told, whoever brings it about and whenever; no thread is left over."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Iterator

import pytest

from legato.core.events import Audio, Done, Event, Failed
from legato.errors import Cancelled, LegatoError, NotReady, UnknownVoice, VoiceFileError
from legato.runtime.background import _AHEAD, Background
from legato.runtime.request import SpeechOptions
from tests.runtime.fakes import FakeEngine, Gate

OPTIONS = SpeechOptions()


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def background(engine: FakeEngine) -> Iterator[Background]:
    before = set(threading.enumerate())
    started = Background(lambda: engine)
    started.wait_ready()
    yield started
    started.close()
    assert engine.closed == 1
    assert set(threading.enumerate()) <= before, "a thread is left over"


def samples(events: list[Event]) -> int:
    return sum(len(event.pcm) for event in events if isinstance(event, Audio))


def test_a_whole_text(background: Background) -> None:
    events = list(background.speak(OPTIONS, "One. Two.").events())
    assert isinstance(events[-1], Done)
    assert samples(events) == 950


def test_a_fed_text(background: Background) -> None:
    ticket = background.speak(OPTIONS)
    for piece in ("O", "ne. Tw", "o."):
        ticket.feed(piece).result(20)
    ticket.end()
    assert samples(list(ticket.events())) == 950
    assert ticket.trace is not None
    assert ticket.trace.samples == 950
    with pytest.raises(Cancelled):
        ticket.feed("more").result(20)


def test_events_on_another_loop(background: Background) -> None:
    async def take() -> list[Event]:
        return [event async for event in background.speak(OPTIONS, "One. Two.").events_async()]

    assert samples(asyncio.run(take())) == 950


def test_a_stream_that_cannot_be_opened(background: Background) -> None:
    ticket = background.speak(SpeechOptions(voice="nobody"))
    with pytest.raises(UnknownVoice):
        list(ticket.events())
    assert concurrent.futures.wait([ticket.feed("text")], 20).done  # nobody waits for ever


def test_the_texts_failure_is_raised_after_what_was_good(background: Background) -> None:
    ticket = background.speak(OPTIONS)
    events = ticket.events()
    ticket.feed("One. Two").result(20)
    heard = 0
    while heard < 300:
        event = next(events)
        heard += len(event.pcm) if isinstance(event, Audio) else 0
    ticket.fail(KeyError("source"))
    with pytest.raises(KeyError, match="source"):
        list(events)


def test_failing_before_the_stream_has_begun(background: Background) -> None:
    """The loop is busy: the stream's coroutine is cancelled before it ever ran."""
    gate = Gate()
    background._loop.call_soon_threadsafe(gate.pass_through)
    assert gate.arrived.wait(20)
    ticket = background.speak(OPTIONS)
    feeding = ticket.feed("One.")
    ticket.fail(KeyError("source"))
    gate.open()
    with pytest.raises(KeyError, match="source"):
        list(ticket.events())
    assert concurrent.futures.wait([feeding], 20).done


def test_cancelling_before_the_stream_has_begun(background: Background) -> None:
    gate = Gate()
    background._loop.call_soon_threadsafe(gate.pass_through)
    assert gate.arrived.wait(20)
    ticket = background.speak(OPTIONS, "One.")
    ticket.cancel()
    gate.open()
    with pytest.raises(Cancelled):
        list(ticket.events())


def test_cancel_stops_the_engine_within_a_step(background: Background, engine: FakeEngine) -> None:
    gate = Gate()
    engine.blocks = 1000
    engine.on_step = lambda states: gate.pass_through() if states[0].steps == 2 else None
    ticket = background.speak(OPTIONS, "One.")
    assert gate.arrived.wait(20)
    ticket.cancel()
    background.call(asyncio.sleep(0))  # the loop has seen it
    background.call(asyncio.sleep(0))
    gate.open()
    assert samples(list(background.speak(OPTIONS, "Two.").events())) == 100_000
    assert engine.log.count("step One.") == 3
    assert engine.log.index("drop One.") < engine.log.index("open Two.")


def test_nobody_reads(background: Background, engine: FakeEngine) -> None:
    """The mailbox and the session bound what is made; another stream is served all the same."""
    engine.blocks, engine.size = 10_000, 1000
    ticket = background.speak(OPTIONS, "One.")
    engine_steps = 0
    other = background.speak(OPTIONS, "Two.").events()
    for _ in range(200):
        next(other)
    engine_steps = engine.log.count("step One.")
    assert 0 < engine_steps < _AHEAD + 12  # 16 chunks of 0.8 s at most taken out, 10 s made
    other.close()
    ticket.cancel()


@pytest.mark.parametrize("read", [True, False])
def test_closing_with_a_stream_open(read: bool) -> None:
    before = set(threading.enumerate())
    engine, gate = FakeEngine(blocks=100_000), Gate()
    engine.on_step = lambda states: gate.pass_through() if states[0].steps == 30 else None
    background = Background(lambda: engine)
    background.wait_ready()
    ticket = background.speak(OPTIONS, "One.")
    outcome: list[object] = []

    def take() -> None:
        try:
            outcome.extend(ticket.events())
        except LegatoError as error:
            outcome.append(error)

    reader = threading.Thread(target=take)
    if read:
        reader.start()
    assert gate.arrived.wait(20)
    gate.open()
    background.close()
    if not read:
        reader.start()
    reader.join(20)
    assert not reader.is_alive()
    last = outcome[-1]
    assert getattr(last, "code", None) == "cancelled", last  # not the end of a whole
    assert not any(isinstance(item, Done) for item in outcome)
    assert engine.closed == 1
    assert set(threading.enumerate()) <= before


def test_closed(engine: FakeEngine) -> None:
    background = Background(lambda: engine)
    background.wait_ready()
    ticket = background.speak(OPTIONS)
    background.close()
    background.close()
    for use in (
        lambda: background.speak(OPTIONS, "One."),
        background.wait_ready,
        lambda: ticket.feed("One."),
        ticket.end,
    ):
        with pytest.raises(NotReady, match="closed"):
            use()
    ticket.cancel()
    (last,) = ticket.events()
    assert isinstance(last, Failed)
    assert last.code == "cancelled"


def test_a_voice_that_cannot_be_loaded() -> None:
    before = set(threading.enumerate())

    def load() -> FakeEngine:
        raise VoiceFileError("Run: this")

    background = Background(load)
    with pytest.raises(VoiceFileError, match="Run: this"):
        background.wait_ready()
    with pytest.raises(VoiceFileError):
        list(background.speak(OPTIONS, "One.").events())
    background.close()
    assert set(threading.enumerate()) <= before


def test_closed_while_it_loads() -> None:
    engine, gate = FakeEngine(), Gate()

    def load() -> FakeEngine:
        gate.pass_through()
        return engine

    background = Background(load)
    assert gate.arrived.wait(20)
    closing = threading.Thread(target=background.close)
    closing.start()
    gate.open()
    closing.join(20)
    with pytest.raises(NotReady):
        background.wait_ready()
    assert not closing.is_alive()
    assert engine.closed == 1


def test_many_threads_speak_at_once(background: Background) -> None:
    lengths: list[int] = []

    def speak() -> None:
        lengths.extend(samples(list(background.speak(OPTIONS, "One. Two.").events())) for _ in range(20))

    threads = [threading.Thread(target=speak) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert lengths == [950] * 80
