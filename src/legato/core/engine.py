"""The contract between the runtime and an engine.

A new engine is one file in `legato/engines/` plus one entry point. `tests/engine_contract.py` runs against
every installed engine and says in code what is written here in words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from legato.core.events import Pcm, Segment


@dataclass(frozen=True, slots=True)
class VoiceInfo:
    """One voice that an engine can speak with."""

    name: str
    language: str  # BCP 47
    description: str = ""
    licence: str = ""


@dataclass(frozen=True, slots=True)
class VoiceSettings:
    """How one stream wants to be spoken. The same settings and text give the same samples."""

    name: str
    speed: float = 1.0  # 2.0 speaks twice as fast
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What the runtime must know about a loaded engine."""

    name: str
    sample_rate: int  # Hz
    voices: tuple[VoiceInfo, ...]  # the first is the default
    overlap: int = 0  # samples by which successive blocks of one segment overlap; 0: they abut
    max_batch: int = 1  # streams that one step may advance
    tolerance: float = 0.0  # max abs difference of streamed and whole synthesis
    exact: bool = True  # streamed equals whole within `tolerance`
    slowest: float = 0.25  # the speeds at which its speech can be understood
    fastest: float = 4.0


@runtime_checkable
class Engine(Protocol):
    """One loaded model that speaks one stream at a time; owned by one worker thread.

    `speak` is a plain generator: not calling `next()` is backpressure, `close()` is cancellation, its local
    variables are the state of the stream. Nothing of a stream lives on `self`, so any number of streams may be
    open and advanced in any order. One `next()` is one step: it should take milliseconds, not seconds.
    """

    @property
    def info(self) -> EngineInfo:
        """Facts that hold for the engine's lifetime."""
        ...

    def speak(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
        """Yield the segment's audio block by block, as early as possible.

        A block may be empty: work was done and nothing is audible yet. A segment without anything speakable
        yields no audio. Silence at both ends is already trimmed to a short pad.

        Raises:
            legato.errors.UnknownVoice: `voice.name` is not one of `info.voices`.
        """
        ...

    def close(self) -> None:
        """Give back memory and threads. No step follows."""
        ...


@runtime_checkable
class BatchEngine(Protocol):
    """An engine that advances several streams in one forward pass; owned by one worker thread."""

    @property
    def info(self) -> EngineInfo:
        """Facts that hold for the engine's lifetime."""
        ...

    def open(self, segment: Segment, voice: VoiceSettings) -> object:
        """Return the explicit state of a new stream; nothing of it lives on `self`."""
        ...

    def step(self, states: Sequence[object]) -> Sequence[Pcm | None]:
        """Advance each stream by one block; None means that it has ended.

        The scheduler chose who is in `states`, at most `info.max_batch`.
        """
        ...

    def drop(self, state: object) -> None:
        """Free a state, ended or not. Never called while a step runs."""
        ...

    def close(self) -> None:
        """Give back memory and threads. No step follows."""
        ...


class OneByOne:
    """Lets an `Engine` run wherever a `BatchEngine` is expected."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def info(self) -> EngineInfo:
        """The wrapped engine's facts."""
        return self._engine.info

    def open(self, segment: Segment, voice: VoiceSettings) -> Iterator[Pcm]:
        """Start the generator; no work is done yet."""
        return self._engine.speak(segment, voice)

    def step(self, states: Sequence[object]) -> Sequence[Pcm | None]:
        """Take one block from each generator."""
        return [next(state, None) for state in states if isinstance(state, Iterator)]

    def drop(self, state: object) -> None:
        """Close the generator, which runs its `finally` blocks."""
        close = getattr(state, "close", None)
        if close is not None:
            close()

    def close(self) -> None:
        """Close the wrapped engine."""
        self._engine.close()
