"""One thread that does the work it is given, in order."""

import asyncio
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class WorkThread:
    """A daemon thread for an engine that must always be called from the same one.

    Not a `ThreadPoolExecutor`: that one refuses work once the interpreter begins to exit, which is when a kept voice is
    closed; and an item here costs one queue and one call into the loop.

    Args:
        name: of the thread.
    """

    def __init__(self, name: str) -> None:
        self._queue: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    async def run(self, work: Callable[..., T], *args: Any) -> T:
        """Call `work` on the thread, after everything that was given before; return or raise what it does.

        Cancelling the wait does not stop the work; nobody gets its result then.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if future.done():  # the wait was cancelled
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)  # type: ignore[arg-type]  # it is a T when there is no error

        def item() -> None:
            result: T | None = None
            error: BaseException | None = None
            try:
                result = work(*args)
            except StopIteration as raised:  # no future takes it: as in a coroutine, it is a mistake
                error = RuntimeError("StopIteration was raised")
                error.__cause__ = raised
            except BaseException as raised:  # it belongs to whoever waits
                error = raised
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(settle, result, error)

        self._queue.put(item)
        return await future

    def close(self) -> None:
        """End the thread after the work it has. Waits for that."""
        self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            item()
            del item  # a step's blocks must not live until the next step
