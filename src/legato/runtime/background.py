"""A service on a thread of its own, for callers that have no event loop, or another one.

caller's thread or loop          "legato" thread (event loop)        engine thread
Ticket.events()  ◄── mailbox ◄── Stream ◄───────── Session ◄──────── steps
Ticket.feed(text) ─────────────► Stream.feed
"""

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, TypeVar

from legato.core.engine import BatchEngine, EngineInfo
from legato.core.events import Event
from legato.core.trace import Trace
from legato.errors import Cancelled, NotReady
from legato.runtime.request import SpeechOptions
from legato.runtime.service import SpeechService, Stream

T = TypeVar("T")

_CLOSED = "This voice is closed. Make a new one."
_AHEAD = 16  # events in a mailbox before the stream is no longer asked


class Background:
    """Runs one `SpeechService` in a daemon thread. Every method may be called from any thread.

    Args:
        load: makes the engine, on the engine's thread.
    """

    def __init__(self, load: Callable[[], BatchEngine]) -> None:
        self._service = SpeechService(load)
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._started = threading.Event()
        self._closed = False
        self._door = threading.Lock()  # what is submitted comes to the loop before its end does, or is refused
        self._thread = threading.Thread(target=self._run, name="legato", daemon=True)
        self._thread.start()
        self._started.wait()

    def wait_ready(self) -> EngineInfo:
        """Block until the voice is warm, and return its facts.

        Raises:
            LegatoError: it could not be loaded, or this was closed.
        """
        self.call(self._service.ready())
        return self._service.info

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the background loop and wait for its result.

        Raises:
            NotReady: this was closed.
        """
        try:
            return self.submit(work).result()
        except concurrent.futures.CancelledError:
            raise NotReady(_CLOSED) from None

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Run a coroutine on the background loop.

        Raises:
            NotReady: this was closed.
        """
        with self._door:
            if self._closed:
                work.close()
                raise NotReady(_CLOSED)
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def soon(self, call: Callable[[], object]) -> None:
        """Call this on the background loop, unless it was closed."""
        with self._door:
            if not self._closed:
                self._loop.call_soon_threadsafe(call)

    def speak(self, options: SpeechOptions, text: str | None = None) -> "Ticket":
        """Begin a stream, with its whole text or, if that is None, to be fed.

        Raises:
            NotReady: this was closed.
        """
        return Ticket(self, self._service, options, text)

    def close(self) -> None:
        """Cancel every stream, free the engine, end the threads. Closing twice is closing once."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._started.set()  # whatever happened, nobody waits for ever

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with self._service:
            self._started.set()
            await self._stop.wait()


class Ticket:
    """One stream on the background loop, held by someone outside of it."""

    def __init__(
        self, background: Background, service: SpeechService, options: SpeechOptions, text: str | None
    ) -> None:
        self.trace: Trace | None = None
        """The facts of the stream, once it is open; complete when the last event was taken."""
        self._background = background
        self._mailbox: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_AHEAD)
        self._notify: Callable[[], object] | None = None
        self._opened: concurrent.futures.Future[Stream] = concurrent.futures.Future()
        self._failure: Exception | None = None
        self._pumping = background.submit(self._pump(service, options, service.now(), text))
        # Not the coroutine's own `finally`: one that is cancelled before it began never comes to it.
        self._pumping.add_done_callback(self._ended)

    def feed(self, text: str) -> concurrent.futures.Future[None]:
        """Add text. The result comes when there is room for more; it raises if the stream is over.

        Raises:
            NotReady: the voice was closed.
        """
        return self._background.submit(self._feed(text))

    def end(self) -> None:
        """No more text.

        Raises:
            NotReady: the voice was closed.
        """
        self._background.submit(self._end())

    def fail(self, error: Exception) -> None:
        """The source of the text failed: the stream stops, and who takes its events gets `error`."""
        self._failure = error
        self.cancel()

    def cancel(self) -> None:
        """Stop within one engine step."""
        self._pumping.cancel()

    def events(self) -> Iterator[Event]:
        """Take the events, waiting for each.

        Raises:
            LegatoError: the stream could not be opened, or was cut off. What `fail` was given is raised too.
        """
        while (item := self._mailbox.get()) is not None:
            yield self._take(item)

    async def events_async(self) -> AsyncIterator[Event]:
        """The same, on the caller's event loop."""
        loop, news = asyncio.get_running_loop(), asyncio.Event()
        self._notify = lambda: loop.call_soon_threadsafe(news.set)
        try:
            while True:
                news.clear()
                try:
                    item = self._mailbox.get_nowait()
                except queue.Empty:
                    await news.wait()
                    continue
                if item is None:
                    return
                yield self._take(item)
        finally:
            self._notify = None

    def _take(self, item: Event | Exception) -> Event:
        if isinstance(item, Exception):
            raise item
        if not self._pumping.done():
            self._background.soon(self._room.release)
        return item

    def _put(self, item: Event | Exception | None) -> None:
        self._mailbox.put(item)
        notify = self._notify
        if notify is not None:
            notify()

    async def _feed(self, text: str) -> None:
        await (await self._stream()).feed(text)

    async def _end(self) -> None:
        (await self._stream()).end()

    async def _stream(self) -> Stream:
        # Shielded: who gives up waiting must not take the stream from the others.
        return await asyncio.shield(asyncio.wrap_future(self._opened))

    async def _pump(
        self, service: SpeechService, options: SpeechOptions, requested_at: float, text: str | None
    ) -> None:
        async with service.stream(options, requested_at=requested_at) as stream:
            self.trace = stream.trace
            self._opened.set_result(stream)
            if text is not None:
                stream.send_text(text)
                stream.end()
            async for event in stream:
                await self._room.acquire()
                self._put(event)

    def _ended(self, pumping: concurrent.futures.Future[None]) -> None:
        """On whichever thread it happened: after this, `events` ends."""
        self._opened.cancel()  # for those who wait to feed a stream that never opened
        error = self._failure
        if error is None and pumping.cancelled():
            error = Cancelled("The speech was cut off: it was cancelled, or its voice was closed.")
        elif error is None:
            raised = pumping.exception()
            error = raised if isinstance(raised, Exception) else None
        if error is not None:
            self._put(error)
        self._put(None)
