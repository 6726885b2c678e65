"""The engine's thread. Sessions are touched on the event loop only; the engine on its thread only.

    event loop                                engine thread
    pick sessions, earliest deadline first
      └── their states ───────────────────►   open what is new, step once
    blocks into sessions, wake the streams ◄──┘
    pick again

One step is in flight at a time. What a listener does in the meantime (cancel, more text) takes effect at the next
pick, so within one step. There is no lock: the two sides never hold the same object at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from legato.core.engine import BatchEngine, VoiceSettings
from legato.core.events import Pcm, Segment
from legato.core.scheduler import pick
from legato.core.session import Session
from legato.errors import EngineFailed, LegatoError
from legato.runtime.thread import WorkThread

_log = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Job:
    """A session that the worker serves."""

    session: Session
    voice: VoiceSettings
    wake: Callable[[], None]  # there may be something to send
    segments: deque[Segment] = field(default_factory=deque)  # handed over, the first one being spoken
    state: object | None = None  # the engine's, of the first segment; None until it is opened
    dropped: bool = False

    @property
    def wants_audio(self) -> bool:
        """Whether the engine should work on it now."""
        return self.session.wants_audio

    def deadline(self, now: float) -> float:
        """By when its next audio must be made."""
        return self.session.deadline(now)


@dataclass(slots=True)
class _Result:
    """What one step did for one job."""

    state: object | None  # to be kept; None if there is none to be freed
    block: Pcm | None = None  # None: the segment has ended, or failed
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    began: float
    ended: float
    results: list[_Result]


class EngineWorker:
    """Steps the engine for the most urgent sessions until it is stopped.

    Args:
        engine: called on `thread` only.
        thread: the one that loaded the engine.
        clock: monotonic seconds, the same that the sessions are told.
    """

    def __init__(self, engine: BatchEngine, thread: WorkThread, clock: Callable[[], float]) -> None:
        self._engine = engine
        self._thread = thread
        self._clock = clock
        self._jobs: list[Job] = []
        self._leftover: list[object] = []  # states of dropped jobs, to be freed on the engine's thread
        self._news = asyncio.Event()
        self.steps = 0

    @property
    def active(self) -> int:
        """Sessions being served."""
        return len(self._jobs)

    def add(self, job: Job) -> None:
        """Serve this session from now on."""
        self._jobs.append(job)
        self._news.set()

    def poke(self) -> None:
        """A session may want audio that did not before."""
        self._news.set()

    def drop(self, job: Job) -> None:
        """Stop serving this session; what the engine holds of it is freed before its next step."""
        if job.dropped:
            return
        job.dropped = True
        self._jobs.remove(job)
        if job.state is not None:
            self._leftover.append(job.state)
            job.state = None
            self._news.set()

    def stop(self, code: str, message: str) -> None:
        """Nobody runs the engine any more: end every stream with this failure, after what is already made."""
        now = self._clock()
        for job in self._jobs:
            job.segments.clear()
            job.session.receive_failure(code, message, now)
            job.wake()

    async def run(self) -> None:
        """Serve until cancelled."""
        while True:
            for job in self._jobs:
                job.segments += job.session.segments_to_speak()
            batch = pick((job for job in self._jobs if job.segments), self._clock(), self._engine.info.max_batch)
            if not batch and not self._leftover:
                self._news.clear()
                await self._news.wait()
                continue
            leftover, self._leftover = self._leftover, []
            work = [(job.state, job.segments[0], job.voice) for job in batch]
            for job in batch:
                job.state = None  # the engine's thread has it
            step = await self._thread.run(self._work, leftover, work)
            self.steps += bool(batch)
            for job, result in zip(batch, step.results, strict=True):
                self._deliver(job, result, step)

    # On the engine's thread. An engine may raise anything, so everything that it raises is caught here: some
    # exceptions (StopIteration, CancelledError) mean something else to a future.

    def _work(self, leftover: list[object], work: list[tuple[object | None, Segment, VoiceSettings]]) -> _Step:
        for state in leftover:
            self._free(state)
        began = self._clock()
        results = [self._opened(*item) for item in work]
        ready = [result for result in results if result.error is None]
        try:
            blocks = self._engine.step([result.state for result in ready]) if ready else []
            if len(blocks) != len(ready):
                raise TypeError(f"step gave {len(blocks)} blocks for {len(ready)} streams")
            for result, block in zip(ready, blocks, strict=True):
                _check(block)
                result.block = block
        except Exception as error:
            for result in ready:  # nobody knows which of them it was
                self._free(result.state)
                result.state, result.error = None, error
        return _Step(began, self._clock(), results)

    def _opened(self, state: object | None, segment: Segment, voice: VoiceSettings) -> _Result:
        try:
            return _Result(self._engine.open(segment, voice) if state is None else state)
        except Exception as error:
            return _Result(None, error=error)

    def _free(self, state: object) -> None:
        try:
            self._engine.drop(state)
        except Exception as error:
            _log.error("engine failed to drop a stream: %s at %s", type(error).__name__, _innermost(error))

    # On the event loop.

    def _deliver(self, job: Job, result: _Result, step: _Step) -> None:
        if job.dropped:
            self._leave(result.state)
            return
        now = self._clock()
        try:
            if result.error is not None:
                raise result.error
            job.session.trace.step(step.began, step.ended, 0 if result.block is None else len(result.block))
            if result.block is None:
                self._leave(result.state)
                job.segments.popleft()
                job.session.receive_segment_end(now)
            else:
                job.session.receive_audio(result.block, now)
                job.state = result.state
        except Exception as error:
            self._leave(result.state)
            self._fail(job, error)
        job.wake()

    def _leave(self, state: object | None) -> None:
        if state is not None:
            self._leftover.append(state)

    def _fail(self, job: Job, error: Exception) -> None:
        """A failure takes along those whose step it was, and no one else."""
        if isinstance(error, LegatoError):
            code, message = error.code, error.message
        else:
            code, message = EngineFailed.code, "The engine failed while speaking. Try again; the log says more."
            # No message and no source lines: they may quote the text.
            _log.error("engine failed: %s at %s", type(error).__name__, _innermost(error))
        job.segments.clear()
        job.session.receive_failure(code, message, self._clock())


def _check(block: object) -> None:
    """What the engine contract says about a block, as far as a mistake would break others than the listener."""
    if block is not None and not (isinstance(block, np.ndarray) and block.ndim == 1 and block.dtype == np.float32):
        raise TypeError("a block must be float32, shape (samples,)")


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "an unknown place" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
