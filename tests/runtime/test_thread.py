"""The engine's thread: in order, one at a time, and what is raised belongs to whoever waits."""

import asyncio
import threading

import pytest

from legato.runtime.thread import WorkThread
from tests.runtime.fakes import Gate


def test_in_order_on_one_thread() -> None:
    thread, seen = WorkThread("test-work"), []

    async def work() -> None:
        await asyncio.gather(*(thread.run(seen.append, (i, threading.current_thread().name)) for i in range(9)))
        assert await thread.run(lambda a, b: a + b, 1, 2) == 3
        assert await thread.run(lambda: threading.current_thread().name) == "test-work"

    asyncio.run(work())
    thread.close()
    assert [i for i, _ in seen] == list(range(9))
    assert not thread._thread.is_alive()


def test_what_it_raises() -> None:
    thread = WorkThread("test-work")

    async def work() -> None:
        with pytest.raises(ZeroDivisionError):
            await thread.run(lambda: 1 / 0)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await thread.run(next, iter(()))
        assert await thread.run(lambda: 5) == 5

    asyncio.run(work())
    thread.close()


def test_a_wait_that_is_given_up() -> None:
    thread, gate = WorkThread("test-work"), Gate()

    async def work() -> None:
        waiting = asyncio.create_task(thread.run(gate.pass_through))
        await asyncio.to_thread(gate.arrived.wait, 20)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open()
        assert await thread.run(lambda: 5) == 5

    asyncio.run(work())
    thread.close()


def test_a_loop_that_is_gone() -> None:
    thread, gate = WorkThread("test-work"), Gate()

    async def work() -> None:
        task = asyncio.create_task(thread.run(gate.pass_through))
        await asyncio.to_thread(gate.arrived.wait, 20)
        task.cancel()

    asyncio.run(work())
    gate.open()
    thread.close()
    assert not thread._thread.is_alive()
