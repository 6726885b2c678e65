"""The worker and the service, with engines that wait and fail where the test says."""

import asyncio
import concurrent.futures
import functools
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from legato.core.chunker import ChunkSpec
from legato.core.events import Audio, Done, Event, Failed
from legato.core.session import Delivery
from legato.errors import EngineFailed, LegatoError, NotReady, TextTooLong, UnknownVoice, VoiceFileError
from legato.runtime.request import SpeechOptions
from legato.runtime.service import _BACKLOG, SpeechService, Status, Stream
from tests.runtime.fakes import SECRET, FakeEngine, Gate, State

DELIVERY = Delivery(chunks=ChunkSpec.fixed(100))


def run(work: Coroutine[Any, Any, Any]) -> None:
    """Run a test's coroutine; nothing here takes longer than a moment, so what hangs fails."""

    async def bounded() -> None:
        async with asyncio.timeout(6):
            await work

    asyncio.run(bounded())


def scenario(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that is a coroutine."""

    @functools.wraps(test)
    def call(**fixtures: Any) -> None:
        run(test(**fixtures))

    return call


@asynccontextmanager
async def serving(engine: FakeEngine, delivery: Delivery = DELIVERY) -> AsyncIterator[SpeechService]:
    async with SpeechService(lambda: engine, lambda _rate: delivery) as service:
        await service.ready()
        yield service
    assert engine.closed == 1


async def events_of(stream: Stream) -> list[Event]:
    return [event async for event in stream]


async def say(service: SpeechService, text: str, **options: Any) -> list[Event]:
    async with service.stream(SpeechOptions(**options)) as stream:
        stream.send_text(text)
        stream.end()
        return await events_of(stream)


def samples(events: list[Event]) -> int:
    return sum(len(event.pcm) for event in events if isinstance(event, Audio))


async def arrived(gate: Gate) -> None:
    assert await asyncio.to_thread(gate.arrived.wait, 20)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop and the engine's thread work until something that is sure to come has come."""
    while not condition():  # noqa: ASYNC110 - what it waits for happens on the engine's thread
        await asyncio.sleep(0)


def hold(gate: Gate, at: int, text: str = "") -> Callable[[Sequence[State]], None]:
    """Wait at the gate in step `at` (from 0) of the segment `text`."""

    def on_step(states: Sequence[State]) -> None:
        if any(state.steps == at and text in state.segment.text for state in states):
            gate.pass_through()

    return on_step


# The life of a service.


@scenario
async def test_warm_before_ready() -> None:
    engine = FakeEngine()
    async with serving(engine) as service:
        assert service.status is Status.READY
        assert engine.warmed == 6  # three texts, twice
        assert engine.live == 0
        assert service.info == engine.info
    assert service.status is Status.CLOSED
    assert len(engine.threads) == 1  # load aside, everything is done on one thread
    assert engine.threads != {threading.current_thread().name}


@scenario
async def test_not_ready_until_it_is_warm() -> None:
    gate, engine = Gate(), FakeEngine()

    def load() -> FakeEngine:
        gate.pass_through()
        return engine

    async with SpeechService(load) as service:
        await arrived(gate)
        assert service.status is Status.LOADING
        with pytest.raises(NotReady, match="still loading") as caught:
            _ = service.info
        assert caught.value.retry_after
        with pytest.raises(NotReady, match="still loading"):
            await service.stream().__aenter__()
        gate.open()
        await service.ready()
        assert service.status is Status.READY


@scenario
async def test_closed_while_it_loads() -> None:
    gate, engine = Gate(), FakeEngine()

    def load() -> FakeEngine:
        gate.pass_through()
        return engine

    async with SpeechService(load) as service:
        await arrived(gate)
        waiting = asyncio.create_task(service.ready())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(gate.open)
    with pytest.raises(NotReady, match="closed"):
        await waiting
    assert engine.closed == 1  # what was loaded is given back
    with pytest.raises(NotReady, match="closed"):
        await service.ready()


@scenario
async def test_never_started() -> None:
    service = SpeechService(FakeEngine)
    with pytest.raises(NotReady, match="async with"):
        await service.ready()
    service._thread.close()


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (VoiceFileError("The file is damaged. Run: this"), VoiceFileError, "Run: this"),
        (RuntimeError("no memory"), EngineFailed, "could not be loaded: RuntimeError: no memory"),
        (StopIteration(), EngineFailed, "could not be loaded: RuntimeError: StopIteration"),
    ],
)
def test_loading_fails(error: Exception, kind: type[LegatoError], message: str) -> None:
    def load() -> FakeEngine:
        raise error

    async def work() -> None:
        async with SpeechService(load) as service:
            for _ in range(2):
                with pytest.raises(kind, match=message):
                    await service.ready()
            assert service.status is Status.FAILED
            with pytest.raises(kind):
                await service.stream().__aenter__()
            with pytest.raises(kind):
                _ = service.info

    run(work())


@scenario
async def test_a_warm_up_that_fails_is_a_load_that_fails() -> None:
    engine = FakeEngine()
    engine.step = lambda _states: 1 / 0  # type: ignore[method-assign, assignment, return-value]
    async with SpeechService(lambda: engine) as service:
        with pytest.raises(EngineFailed, match="ZeroDivisionError"):
            await service.ready()
    assert engine.closed == 1


@scenario
async def test_closed_with_streams_open() -> None:
    """Nobody waits for ever, and nobody takes the torso for the whole."""
    gate, engine = Gate(), FakeEngine()
    engine.on_step = hold(gate, at=1)
    async with AsyncStreams(engine) as (service, streams):
        busy, idle = streams
        busy.send_text("Long. Text.")
        waiting = [asyncio.create_task(events_of(stream)) for stream in (busy, idle)]
        await arrived(gate)
        asyncio.get_running_loop().call_later(0, gate.open)
        await service.__aexit__(None, None, None)
        for task in waiting:
            last = (await task)[-1]
            assert isinstance(last, Failed)
            assert last.code == "cancelled"
        assert engine.closed == 1
        assert engine.log[-1] == "close"


class AsyncStreams:
    """A service with two open streams, whose end the test brings about."""

    def __init__(self, engine: FakeEngine) -> None:
        self._service = SpeechService(lambda: engine, lambda _rate: DELIVERY)

    async def __aenter__(self) -> tuple[SpeechService, list[Stream]]:
        await self._service.__aenter__()
        await self._service.ready()
        self._contexts = [self._service.stream() for _ in range(2)]
        return self._service, [await context.__aenter__() for context in self._contexts]

    async def __aexit__(self, *_: object) -> None:
        for context in self._contexts:
            await context.__aexit__(None, None, None)


# Streams.


@scenario
async def test_a_stream() -> None:
    engine = FakeEngine()
    async with serving(engine) as service:
        events = await say(service, "One. Two.", voice="two")
        assert isinstance(events[-1], Done)
        assert samples(events) == 600 + 350  # and the pause
        assert service.steps == 8
        await until(lambda: engine.live == 0)
        assert service.active == 0
        assert engine.log[:5] == ["open One.", "step One.", "step One.", "step One.", "step One."]


@scenario
async def test_speed_and_voice_reach_the_engine() -> None:
    seen = []
    engine = FakeEngine(on_step=lambda states: seen.append(states[0].voice))
    async with serving(engine) as service:
        assert samples(await say(service, "One. Two.", voice="fake:two", speed=2, seed=5)) == 600 + 175
    assert {(voice.name, voice.speed, voice.seed) for voice in seen} == {("two", 2.0, 5)}


@scenario
async def test_wrong_options_open_nothing() -> None:
    async with serving(FakeEngine()) as service:
        with pytest.raises(UnknownVoice):
            await say(service, "One.", voice="three")
        assert service.active == 0


@scenario
async def test_who_stops_at_the_last_event_leaves_nothing_behind() -> None:
    async with serving(FakeEngine()) as service:
        for _ in range(3):
            async with service.stream() as stream:
                stream.send_text("One.")
                stream.end()
                async for event in stream:
                    if isinstance(event, Done):
                        break
        assert service.active == 0


@scenario
async def test_nothing_to_speak_is_said() -> None:
    async with serving(FakeEngine(blocks=0)) as service:
        (failed,) = await say(service, "你好.")
        assert isinstance(failed, Failed)
        assert failed.code == "nothing_to_speak"
        (failed,) = await say(service, "...")
        assert isinstance(failed, Failed)


@scenario
async def test_empty_blocks_are_work_without_sound() -> None:
    engine = FakeEngine()
    engine.on_step = lambda states: [np.zeros(0, np.float32)] if _count(states) % 2 else None
    async with serving(engine) as service:
        assert samples(await say(service, "One.")) == 300


def _count(states: Sequence[State]) -> int:
    for state in states:
        state.segment_steps = getattr(state, "segment_steps", 0) + 1  # type: ignore[attr-defined]
    return int(states[0].segment_steps)  # type: ignore[attr-defined]


@scenario
async def test_unreadable_characters_are_read_as_spaces() -> None:
    engine = FakeEngine()
    async with serving(engine) as service:
        await say(service, "O\x00n\ud800e.")
    assert engine.log[0] == "open O n e."


# Cancelling.


@scenario
async def test_cancel_during_a_step_stops_within_it_and_frees_on_the_engines_thread() -> None:
    gate, engine = Gate(), FakeEngine(blocks=1000)
    engine.on_step = hold(gate, at=1)
    async with serving(engine) as service, service.stream() as stream:
        stream.send_text("One. Two.")
        await arrived(gate)  # the second step is in flight
        stream.cancel()
        gate.open()
        last = (await events_of(stream))[-1]
        assert isinstance(last, Failed)
        assert last.code == "cancelled"
        await until(lambda: engine.live == 0)
        assert engine.log == ["open One.", "step One.", "step One.", "drop One."]
        await say(service, "Next.")  # and nothing of it comes later
        assert engine.log[4:6] == ["open Next.", "step Next."]
    assert len(engine.threads) == 1


@scenario
async def test_a_dropped_state_is_freed_before_the_next_step() -> None:
    gate, engine = Gate(), FakeEngine()
    engine.on_step = hold(gate, at=1, text="Other")
    async with serving(engine) as service, service.stream() as stream, service.stream() as other:
        stream.send_text("One.")
        stream.end()
        await until(lambda: engine.steps >= 1)
        other.send_text("Other.")
        other.end()
        await arrived(gate)
        alive = engine.live == 2
        stream.cancel()  # its state lies still while the engine works for the other
        gate.open()
        await until(lambda: "drop One." in engine.log)
        if alive:
            at = engine.log.index("drop One.")
            assert engine.log[at - 1] == "step Other."
        assert isinstance((await events_of(other))[-1], Done)


@scenario
async def test_leaving_the_context_cancels() -> None:
    gate, engine = Gate(), FakeEngine(blocks=1000)
    engine.on_step = hold(gate, at=1)
    async with serving(engine) as service:
        async with service.stream() as stream:
            stream.send_text("One.")
            stream.end()
            await arrived(gate)
        gate.open()
        await until(lambda: engine.live == 0)
        assert (service.active, engine.steps) == (0, 2)


@scenario
async def test_cancelling_twice_and_after_the_end() -> None:
    async with serving(FakeEngine()) as service, service.stream() as stream:
        stream.send_text("One.")
        stream.end()
        await events_of(stream)
        stream.cancel()
        stream.cancel()
        assert service.active == 0


@scenario
async def test_a_state_that_cannot_be_dropped_hurts_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def on_drop(_state: State) -> None:
        raise RuntimeError(SECRET)

    async with serving(FakeEngine(on_drop=on_drop)) as service:
        for _ in range(2):
            assert isinstance((await say(service, f"{SECRET}."))[-1], Done)
    assert "failed to drop a stream: RuntimeError" in caplog.text
    assert SECRET not in caplog.text


# Failing.


def broken(error: BaseException, at: int, text: str = SECRET) -> Callable[[Sequence[State]], None]:
    def on_step(states: Sequence[State]) -> None:
        if any(state.steps == at and text in state.segment.text for state in states):
            raise error

    return on_step


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(f"cannot say {SECRET}"),
        KeyError(SECRET),
        StopIteration(SECRET),
        concurrent.futures.CancelledError(),
        TimeoutError(),
        MemoryError(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_exception_ends_its_stream_only(error: Exception, at: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    engine = FakeEngine(on_step=broken(error, at))

    async def work() -> None:
        async with serving(engine) as service:
            bad, good = await asyncio.gather(say(service, f"The {SECRET}."), say(service, "Good. Text."))
            failed = bad[-1]
            assert isinstance(failed, Failed)
            assert failed.code == "engine_failed"
            assert SECRET not in failed.message
            assert samples(bad) == at * 100  # what was good is sent
            assert isinstance(good[-1], Done)
            assert samples(good) == 950
            assert isinstance((await say(service, "Next."))[-1], Done)
            await until(lambda: engine.live == 0)
            assert service.active == 0

    run(work())
    assert f"engine failed: {type(error).__name__} at " in caplog.text
    assert SECRET not in caplog.text


@scenario
async def test_a_legato_error_says_what_it_says() -> None:
    engine = FakeEngine(on_step=broken(TextTooLong("Say less."), 1))
    async with serving(engine) as service:
        failed = (await say(service, f"{SECRET}."))[-1]
        assert failed == Failed("text_too_long", "Say less.")


@scenario
async def test_opening_fails_for_one_of_a_batch() -> None:
    def on_open(segment: Any) -> None:
        if SECRET in segment.text:
            raise RuntimeError(SECRET)

    gate, engine = Gate(), FakeEngine(max_batch=3, on_open=on_open)
    engine.on_step = hold(gate, at=0, text="First")
    async with serving(engine) as service:
        first = asyncio.create_task(say(service, "First."))
        await arrived(gate)
        rest = [asyncio.create_task(say(service, text)) for text in ("Good.", f"{SECRET}.")]
        await until(lambda: service.active == 3)
        gate.open()
        good, bad = await asyncio.gather(*rest)
        assert isinstance((await first)[-1], Done)
        assert isinstance(good[-1], Done)
        assert isinstance(bad[-1], Failed)
        await until(lambda: engine.live == 0)


@scenario
async def test_a_step_that_fails_takes_its_batch_and_frees_it() -> None:
    gate, engine = Gate(), FakeEngine(max_batch=2)
    held, failing = hold(gate, at=0, text="First"), broken(RuntimeError(), 1)

    def on_step(states: Sequence[State]) -> None:
        held(states)
        failing(states)

    engine.on_step = on_step
    async with serving(engine) as service:
        first = asyncio.create_task(say(service, "First."))
        await arrived(gate)
        rest = [asyncio.create_task(say(service, text)) for text in (f"{SECRET}.", "Third.", "Fourth.")]
        await until(lambda: service.active == 4)
        gate.open()
        results = await asyncio.gather(first, *rest)
        assert isinstance(results[1][-1], Failed)
        assert sum(isinstance(events[-1], Failed) for events in results) <= 2
        await until(lambda: engine.live == 0)
        assert isinstance((await say(service, "Next."))[-1], Done)


@pytest.mark.parametrize(
    "given",
    [
        [],
        [None, None],
        [np.zeros(3)],
        [np.zeros((1, 3), np.float32)],
        [[0.0]],
        ["sound"],
        5,
    ],
    ids=repr,
)
def test_an_engine_that_breaks_the_contract_fails_its_stream(given: object) -> None:
    engine = FakeEngine(on_step=lambda states: given if SECRET in states[0].segment.text else None)

    async def work() -> None:
        async with serving(engine) as service:
            failed = (await say(service, f"{SECRET}."))[-1]
            assert isinstance(failed, Failed)
            assert failed.code == "engine_failed"
            assert isinstance((await say(service, "Next."))[-1], Done)
            await until(lambda: engine.live == 0)

    run(work())


@scenario
async def test_a_block_shorter_than_the_overlap_fails_its_stream() -> None:
    async with serving(FakeEngine(overlap=50, size=40)) as service:
        failed = (await say(service, "One."))[-1]
        assert isinstance(failed, Failed)
        assert failed.code == "engine_failed"
        assert service.active == 0


@scenario
async def test_cancelled_while_its_step_fails() -> None:
    gate, engine = Gate(), FakeEngine()
    held, failing = hold(gate, at=1), broken(RuntimeError(), 1)

    def on_step(states: Sequence[State]) -> None:
        held(states)
        failing(states)

    engine.on_step = on_step
    async with serving(engine) as service, service.stream() as stream:
        stream.send_text(f"{SECRET}.")
        stream.end()
        await arrived(gate)
        stream.cancel()
        gate.open()
        last = (await events_of(stream))[-1]
        assert isinstance(last, Failed)
        assert last.code == "cancelled"
        await until(lambda: engine.live == 0)


# Who is served, and how much.


@scenario
async def test_the_earliest_deadline_first() -> None:
    gate, engine = Gate(), FakeEngine()
    engine.on_step = hold(gate, at=0, text="First")
    async with serving(engine) as service:
        now = service.now()
        first = asyncio.create_task(say(service, "First."))
        await arrived(gate)

        async def later(text: str, requested_at: float) -> list[Event]:
            async with service.stream(requested_at=requested_at) as stream:
                stream.send_text(text)
                stream.end()
                return await events_of(stream)

        rest = [asyncio.create_task(later(f"At {at}.", now - 10 + at)) for at in (3, 1, 2)]
        await until(lambda: service.active == 4)
        gate.open()
        await asyncio.gather(first, *rest)
        assert [entry for entry in engine.log if entry.startswith("open At")] == [
            "open At 1.",
            "open At 2.",
            "open At 3.",
        ]


@scenario
async def test_two_streams_take_turns() -> None:
    engine = FakeEngine(blocks=6)
    gate = Gate()
    engine.on_step = hold(gate, at=0, text="A")
    async with serving(engine) as service:
        tasks = [asyncio.create_task(say(service, "A."))]
        await arrived(gate)
        tasks.append(asyncio.create_task(say(service, "B.")))
        await until(lambda: service.active == 2)
        gate.open()
        for events in await asyncio.gather(*tasks):
            assert samples(events) == 600
        order = [entry.removeprefix("step ") for entry in engine.log if entry.startswith("step")]
        assert order.index("B.") < len(order) - 1 - order[::-1].index("A.")  # B began before A had ended


@scenario
async def test_a_batch_is_stepped_together() -> None:
    gate, engine = Gate(), FakeEngine(max_batch=2)
    engine.on_step = hold(gate, at=0, text="A")
    async with serving(engine) as service:
        tasks = [asyncio.create_task(say(service, "A."))]
        await arrived(gate)
        tasks += [asyncio.create_task(say(service, text)) for text in ("B.", "C.")]
        await until(lambda: service.active == 3)
        gate.open()
        for events in await asyncio.gather(*tasks):
            assert samples(events) == 300
        assert any(" + " in entry for entry in engine.log)
        await until(lambda: engine.live == 0)


@scenario
async def test_made_is_bounded_when_nobody_reads() -> None:
    engine = FakeEngine(blocks=1000)
    delivery = Delivery(chunks=ChunkSpec.fixed(100), high_water=2.0)
    async with serving(engine, delivery) as service, service.stream() as stream:
        stream.send_text("One. Two.")
        await until(lambda: engine.steps == 20)
        assert isinstance((await say(service, "Other."))[-1], Done)  # 1000 steps of somebody else
        assert sum(entry == "step One." for entry in engine.log) == 20  # two seconds, and not one block more
        stream.cancel()


@scenario
async def test_the_next_sentence_is_made_while_the_first_is_unread() -> None:
    engine = FakeEngine()
    async with serving(engine) as service, service.stream() as stream:
        stream.send_text("One. Two. Three. ")
        await until(lambda: engine.log.count("step Three.") == 4)  # nobody has asked for a single event
        stream.end()
        assert samples(await events_of(stream)) == 3 * 300 + 2 * 350


@scenario
async def test_feed_waits_while_much_text_waits() -> None:
    gate, engine = Gate(), FakeEngine()
    engine.on_step = hold(gate, at=0, text="Start")
    async with serving(engine) as service, service.stream() as stream:
        fed = 0

        async def write() -> None:
            nonlocal fed
            await stream.feed("Start. ")
            for _ in range(3 * _BACKLOG):
                await stream.feed("More. ")
                fed += 1
            stream.end()

        writing = asyncio.create_task(write())
        await arrived(gate)
        await until(lambda: fed >= _BACKLOG)
        for _ in range(20):
            await asyncio.sleep(0)
        assert fed <= _BACKLOG + 1
        gate.open()
        assert isinstance((await events_of(stream))[-1], Done)
        await writing
        assert fed == 3 * _BACKLOG


@scenario
async def test_feed_ends_when_the_stream_does() -> None:
    gate, engine = Gate(), FakeEngine()
    engine.on_step = hold(gate, at=0)
    async with serving(engine) as service, service.stream() as stream:
        stream.send_text("More. " * 2 * _BACKLOG)
        waiting = asyncio.create_task(stream.feed("And more. "))
        await arrived(gate)
        stream.cancel()
        gate.open()
        with pytest.raises(LegatoError, match="over"):
            await waiting
        with pytest.raises(LegatoError, match="over"):
            await stream.feed("x")


@scenario
async def test_sound_starts_while_the_text_is_still_written() -> None:
    async with serving(FakeEngine()) as service, service.stream() as stream:
        stream.send_text("One. T")
        events = stream.__aiter__()
        heard = 0
        while heard < 300:
            event = await anext(events)
            heard += len(event.pcm) if isinstance(event, Audio) else 0
        stream.send_text("wo.")
        stream.end()
        rest = [event async for event in events]
        assert isinstance(rest[-1], Done)
        assert heard + samples(rest) == 950


@scenario
async def test_a_thousand_streams_leave_nothing() -> None:
    engine = FakeEngine(blocks=1)
    async with serving(engine) as service:
        for _ in range(100):
            async with asyncio.TaskGroup() as group:
                for _ in range(10):
                    group.create_task(say(service, "One."))
        await until(lambda: engine.live == 0)
        assert service.active == 0
