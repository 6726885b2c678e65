"""Small engines for the tests of the runtime: they say what is done to them, wait where told, and fail where told.

No test sleeps. A `Gate` holds the engine's thread inside a step until the test lets it go on.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from legato.core.engine import EngineInfo, VoiceInfo, VoiceSettings
from legato.core.events import Pcm, Segment
from legato.runtime.service import WARM_UP

RATE = 1000
VOICES = (VoiceInfo("one", "en"), VoiceInfo("two", "en"))
SECRET = "xylophone"  # a word of the spoken text, which no message and no log may hold
WARM = frozenset(WARM_UP)


class Gate:
    """Lets the engine's thread pass when opened; tells when it has arrived."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self._open = threading.Event()

    def pass_through(self) -> None:
        self.arrived.set()
        assert self._open.wait(20), "the test never opened the gate"

    def open(self) -> None:
        self._open.set()


@dataclass(eq=False)
class State:
    segment: Segment
    voice: VoiceSettings
    steps: int = 0


@dataclass(eq=False)
class FakeEngine:
    """A batch engine whose segments give `blocks` blocks of `size` samples; `log` has every call but the warm-up's."""

    blocks: int = 3
    size: int = 100
    max_batch: int = 1
    overlap: int = 0
    on_open: Callable[[Segment], None] | None = None
    on_step: Callable[[Sequence[State]], object] | None = None  # what it returns, if anything, is returned
    on_drop: Callable[[State], None] | None = None
    log: list[str] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    warmed: int = 0
    closed: int = 0
    live: int = 0  # states opened and not dropped

    @property
    def info(self) -> EngineInfo:
        return EngineInfo("fake", RATE, VOICES, max_batch=self.max_batch, overlap=self.overlap)

    def open(self, segment: Segment, voice: VoiceSettings) -> State:
        self._called(f"open {segment.text}", [segment])
        if self.on_open is not None and segment.text not in WARM:
            self.on_open(segment)
        self.live += 1
        return State(segment, voice)

    def step(self, states: Sequence[State]) -> Sequence[Pcm | None]:
        assert 1 <= len(states) <= self.max_batch
        segments = [state.segment for state in states]
        self._called("step " + " + ".join(segment.text for segment in segments), segments)
        if self.on_step is not None and segments[0].text not in WARM:
            given = self.on_step(states)
            if given is not None:
                return given  # type: ignore[return-value]
        return [self._block(state) for state in states]

    def _block(self, state: State) -> Pcm | None:
        state.steps += 1
        if state.steps > self.blocks:
            self.warmed += state.segment.text in WARM
            return None
        return np.full(self.size, 0.5, np.float32)

    def drop(self, state: State) -> None:
        self._called(f"drop {state.segment.text}", [state.segment])
        self.live -= 1
        if self.on_drop is not None and state.segment.text not in WARM:
            self.on_drop(state)

    def close(self) -> None:
        self.log.append("close")
        self.threads.add(threading.current_thread().name)
        self.closed += 1

    def _called(self, what: str, segments: Sequence[Segment]) -> None:
        self.threads.add(threading.current_thread().name)
        if segments[0].text not in WARM:
            self.log.append(what)

    @property
    def steps(self) -> int:
        """Steps taken for streams, the warm-up apart."""
        return sum(entry.startswith("step") for entry in self.log)
