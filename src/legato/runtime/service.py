"""The asyncio front door: `async with service.stream(options) as stream: async for event in stream`."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from types import TracebackType
from typing import Self

from legato.core.engine import BatchEngine, EngineInfo, VoiceSettings
from legato.core.events import Event, Segment
from legato.core.segmenter import PlainSegmenter
from legato.core.session import Delivery, Session
from legato.core.trace import Trace
from legato.errors import Cancelled, EngineFailed, LegatoError, NotReady
from legato.runtime.delivery import Deliver, deliver
from legato.runtime.request import SpeechOptions, readable, voice_settings
from legato.runtime.thread import WorkThread
from legato.runtime.worker import EngineWorker, Job

_log = logging.getLogger(__name__)

WARM_UP = (
    "Hello.",
    "Is Zyxolutrix ready to speak, after 42 attempts?",
    "A sentence of ordinary length makes every part of the voice allocate what it needs, so that nobody has to wait "
    "for it later on.",
)
"""Spoken before `ready`: a short text, unknown words and numbers, and as much as a segment usually has."""

_WARM_UP_ROUNDS = 2
_BACKLOG = 32  # segments that `feed` lets wait before it waits itself


class Status(StrEnum):
    """Where a service is in its life."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    CLOSED = "closed"


class Stream:
    """One stream of speech, on the event loop of its service. It decides nothing: its `Session` does.

    Iterate over it once for its events; the last is `Done` or `Failed`. Text may be added while it speaks.
    """

    def __init__(
        self, session: Session, worker: EngineWorker, settings: VoiceSettings, clock: Callable[[], float]
    ) -> None:
        self._session = session
        self._worker = worker
        self._clock = clock
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._job = Job(session, settings, self._wake)
        worker.add(self._job)

    @property
    def trace(self) -> Trace:
        """The facts recorded so far."""
        return self._session.trace

    def send_text(self, text: str) -> None:
        """Add text. Unreadable characters become spaces.

        Raises:
            ValueError: after `end`.
        """
        self._session.receive_text(readable(text), self._clock())
        self._changed()

    async def feed(self, text: str) -> None:
        """Like `send_text`, and wait while more text is waiting than the voice will need for a while.

        Raises:
            Cancelled: the stream is over.
        """
        while self._session.backlog > _BACKLOG and not self._session.over:
            self._room.clear()
            await self._room.wait()
        if self._session.over:
            raise Cancelled("The stream is over; no more text is taken.")
        self.send_text(text)

    def end(self) -> None:
        """No more text."""
        self._session.receive_end(self._clock())
        self._changed()

    def cancel(self) -> None:
        """Stop at once: nothing but `Failed("cancelled")` follows, and the engine stops within one step."""
        self._session.receive_cancel(self._clock())
        self._worker.drop(self._job)
        self._wake()

    def leave(self) -> None:
        """Nobody takes more events, the last one perhaps taken: cancel what is left and be forgotten."""
        if not self._session.closed:
            self._session.receive_cancel(self._clock())
        self._worker.drop(self._job)
        self._wake()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield events as they fall due. Who takes them slowly slows down the engine for this stream only."""
        session = self._session
        while True:
            events = session.events_to_send(self._clock())
            self._worker.poke()  # there is room now, and a pause of the writer may have completed a segment
            for event in events:
                yield event
            if session.closed:
                self._worker.drop(self._job)
                return
            now = self._clock()
            self._news.clear()
            if session.ready(now):
                continue
            timer = session.timer(now)
            if timer is None:
                await self._news.wait()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, timer - now)):
                        await self._news.wait()

    def _changed(self) -> None:
        self._worker.poke()
        self._news.set()

    def _wake(self) -> None:
        self._news.set()
        self._room.set()


class SpeechService:
    """One engine on its own thread, and the streams that it serves.

    Args:
        load: makes the engine; called on the engine's thread.
        delivery: makes the way that audio is delivered from its sample rate; None for the default of a configuration.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        load: Callable[[], BatchEngine],
        delivery: Deliver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._deliver = delivery or deliver()
        self._delivery: Delivery | None = None  # at the engine's rate, once it is loaded
        self._clock = clock
        self._thread = WorkThread("legato-engine")
        self._engine: BatchEngine | None = None
        self._worker: EngineWorker | None = None
        self._loading: asyncio.Task[None] | None = None
        self._serving: asyncio.Task[None] | None = None
        self.status = Status.LOADING
        self.failure: LegatoError | None = None
        """Why the status is `FAILED`."""

    async def __aenter__(self) -> Self:
        """Begin to load; returns at once. `ready()` waits for the end of the warm-up."""
        self._loading = asyncio.create_task(self._start(), name="legato-load")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Fail the open streams, close the engine and end its thread. A step in flight, or loading, is waited for."""
        self.status = Status.CLOSED
        try:
            if self._loading is not None:
                await self._loading  # the thread cannot be interrupted, and what it makes has to be closed
            if self._serving is not None:
                self._serving.cancel()
                with suppress(asyncio.CancelledError):
                    await self._serving
            if self._worker is not None:
                self._worker.stop(Cancelled.code, "The voice was closed while it spoke.")
            if self._engine is not None:
                await self._thread.run(self._engine.close)
        finally:
            self._thread.close()

    @property
    def info(self) -> EngineInfo:
        """The engine's facts.

        Raises:
            NotReady: it is still loading.
            LegatoError: loading failed.
        """
        return self._ready_worker()[0].info

    @property
    def active(self) -> int:
        """Streams being served."""
        return 0 if self._worker is None else self._worker.active

    @property
    def steps(self) -> int:
        """Engine steps taken so far, for anyone."""
        return 0 if self._worker is None else self._worker.steps

    def now(self) -> float:
        """The time on the service's clock, in seconds."""
        return self._clock()

    async def ready(self) -> None:
        """Wait until the engine is loaded and warm.

        Raises:
            LegatoError: it could not be loaded, or was closed; the message says what to do.
        """
        if self._loading is None:
            raise NotReady("The service was not started: use it as `async with`.")
        await asyncio.shield(self._loading)
        self._ready_worker()

    @asynccontextmanager
    async def stream(
        self, options: SpeechOptions | None = None, *, requested_at: float | None = None
    ) -> AsyncIterator[Stream]:
        """Open a stream; leaving the context cancels what is left of it.

        Args:
            options: the voice and how it speaks.
            requested_at: when the listener asked, if that was earlier than now.

        Raises:
            LegatoError: not ready, or the options are wrong.
        """
        engine, worker = self._ready_worker()
        settings = voice_settings(options or SpeechOptions(), engine.info)
        delivery = self._delivery
        assert delivery is not None
        now = self._clock() if requested_at is None else requested_at
        session = Session(engine.info, PlainSegmenter(), delivery, now, speed=settings.speed)
        session.trace.accept(self._clock())
        stream = Stream(session, worker, settings, self._clock)
        try:
            yield stream
        finally:
            stream.leave()

    def _ready_worker(self) -> tuple[BatchEngine, EngineWorker]:
        if self.failure is not None:
            raise self.failure
        if self.status is Status.CLOSED:
            raise NotReady("This voice is closed. Make a new one.")
        if self._engine is None or self._worker is None or self.status is not Status.READY:
            raise NotReady("The voice is still loading. Try again in a second.", retry_after=1)
        return self._engine, self._worker

    async def _start(self) -> None:
        try:
            self._engine = await self._thread.run(self._load_and_warm_up)
        except LegatoError as error:
            self.failure = error
        except Exception as error:
            self.failure = EngineFailed(f"The engine could not be loaded: {type(error).__name__}: {error}")
        if self._engine is None:
            if self.status is Status.LOADING:
                self.status = Status.FAILED
            _log.error("%s", self.failure)
            return
        if self.status is Status.CLOSED:
            return
        self._delivery = self._deliver(self._engine.info.sample_rate)
        self._worker = EngineWorker(self._engine, self._thread, self._clock)
        self._serving = asyncio.create_task(self._worker.run(), name="legato-worker")
        self.status = Status.READY

    def _load_and_warm_up(self) -> BatchEngine:
        engine = self._load()
        try:
            _warm_up(engine)
        except BaseException:
            engine.close()
            raise
        return engine


def _warm_up(engine: BatchEngine) -> None:
    voice = VoiceSettings(engine.info.voices[0].name)
    for _ in range(_WARM_UP_ROUNDS):
        for index, text in enumerate(WARM_UP):
            state = engine.open(Segment(index, text), voice)
            while engine.step([state])[0] is not None:
                pass
            engine.drop(state)
