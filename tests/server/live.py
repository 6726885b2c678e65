"""A real server on a loopback port, and engines that fail on purpose."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import uvicorn

from legato.core.engine import BatchEngine, EngineInfo, OneByOne, VoiceInfo, VoiceSettings
from legato.core.events import Pcm, Segment
from legato.runtime.service import SpeechService
from legato.server.app import create_app
from legato.server.run import configure, listen
from legato.server.settings import ConnectionSettings, ServerSettings

RATE = 24000
WAIT = 30.0  # seconds after which a hanging test fails instead of hanging


@dataclass(frozen=True)
class Live:
    url: str
    port: int
    service: SpeechService


@contextmanager
def serve(
    load: Callable[[], BatchEngine], settings: ServerSettings | None = None, *, wait_ready: bool = True
) -> Iterator[Live]:
    service = SpeechService(load)
    loaded = threading.Event()
    app = create_app(service, settings, on_loaded=lambda _: loaded.set())
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(configure(app, ConnectionSettings()))
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]))
    thread.start()
    try:
        if wait_ready:
            assert loaded.wait(WAIT)
        port = listener.getsockname()[1]
        yield Live(f"http://127.0.0.1:{port}", port, service)
    finally:
        server.should_exit = True
        thread.join(WAIT)
        listener.close()
        assert not thread.is_alive()


class FaultyEngine:
    """A tone that breaks where the text says so; its steps can be held.

    "good 3" gives three blocks; "break 3" gives three blocks and raises.
    """

    info = EngineInfo(name="faulty", sample_rate=RATE, voices=(VoiceInfo("tone", "en"),))

    def __init__(self) -> None:
        self.gate: threading.Semaphore | None = None  # each step takes one permit
        self.entered = 0  # steps begun
        self.closed_early = threading.Event()

    def load(self) -> BatchEngine:
        return OneByOne(self)

    def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
        what, _, count = segment.text.rstrip(".").partition(" ")
        try:
            for _ in range(int(count) if count.isdigit() else 1):
                self.entered += 1
                if self.gate is not None:
                    assert self.gate.acquire(timeout=WAIT)
                yield np.full(RATE // 5, 0.25, np.float32)
        except GeneratorExit:
            self.closed_early.set()
            raise
        if what == "break":
            raise RuntimeError(f"cannot say {segment.text!r}")

    def close(self) -> None:
        pass
