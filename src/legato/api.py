"""The library: `legato.speak`, `legato.Voice`, and the `Speech` that they give."""

import asyncio
import atexit
import functools
import threading
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from legato.core.engine import EngineInfo
from legato.core.events import Audio, Event, Failed, Pcm
from legato.core.trace import Trace
from legato.errors import Cancelled, InvalidRequest, error_for
from legato.runtime.background import Background, Ticket
from legato.runtime.registry import engine_of, loader
from legato.runtime.request import DEFAULT_VOICE, SpeechOptions, check_text, voice_settings
from legato.wire.wav import WavEncoder

Text = str | Iterable[str] | AsyncIterable[str]
"""A whole text, or its pieces as they are written, such as the deltas of a language model."""


class Voice:
    """A loaded voice. Many texts may be spoken with it, one after another or at the same time.

    Making one blocks until the model is loaded and warm (about half a second). It owns two threads; `close()` or the
    end of a `with` block gives them back.

    Args:
        name: of the voice, or "default"; `engine:name` says which engine as well.
        engine: name of an installed engine, if the voice's name does not say it.

    Raises:
        LegatoError: there is no such voice or engine, or it cannot be loaded. The message says what to do.
    """

    def __init__(self, name: str = DEFAULT_VOICE, *, engine: str | None = None) -> None:
        self._background = Background(loader(engine_of(name) if engine is None else engine))
        try:
            self._info = self._background.wait_ready()
            self._name = voice_settings(SpeechOptions(voice=name), self._info).name
        except BaseException:
            self._background.close()
            raise

    @property
    def name(self) -> str:
        """The voice's own name."""
        return self._name

    @property
    def info(self) -> EngineInfo:
        """Facts about the engine behind it."""
        return self._info

    @property
    def sample_rate(self) -> int:
        """Samples per second."""
        return self._info.sample_rate

    def speak(self, text: Text, *, speed: float = 1.0, seed: int = 0) -> "Speech":
        """Return the speech for a text; work begins when it is iterated over.

        Args:
            text: whole, or an iterable or async iterable of pieces, cut anywhere.
            speed: 0.25 (slow) to 2 (fast) with the embedded voice; `info.slowest` to `info.fastest`.
            seed: the same seed and text give the same samples, however the text or the audio was cut.

        Raises:
            LegatoError: text, speed or seed cannot be accepted.
        """
        options = SpeechOptions(voice=self._name, speed=speed, seed=seed)
        voice_settings(options, self._info)
        if isinstance(text, str):
            text = check_text(text)
        elif not isinstance(text, Iterable | AsyncIterable):
            raise InvalidRequest("text must be a string, or an iterable or async iterable of strings.", param="text")
        return Speech(self._background, options, text, self.sample_rate)

    def close(self) -> None:
        """Stop what is being spoken and give back the model and its threads."""
        self._background.close()

    def __enter__(self) -> Self:
        """Use it as `with legato.Voice() as voice:`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


class Speech:
    """Audio that is being made. Iterate with `for` or `async for`; leaving the loop early stops the work.

    Chunks are `Audio`: `chunk.pcm` is float32 mono in [-1, 1], `chunk.start` its position in samples, `chunk.span` the
    part of the text it stands for. A failure raises `LegatoError` after the chunks that were good.
    """

    def __init__(self, background: Background, options: SpeechOptions, text: Text, sample_rate: int) -> None:
        self.sample_rate = sample_rate
        """Samples per second."""
        self._background = background
        self._options = options
        self._text = text
        self._ticket: Ticket | None = None

    @property
    def trace(self) -> Trace | None:
        """What happened and when, for `legato.core.trace.report`; None before the iteration begins."""
        return None if self._ticket is None else self._ticket.trace

    def __iter__(self) -> Iterator[Audio]:
        """Yield chunks as they are made; the text is read in a thread, so a slow writer does not hold up the sound.

        Raises:
            LegatoError: the speech failed. What the text's own iterator raises is raised here too.
        """
        text = self._text
        if isinstance(text, AsyncIterable):
            raise InvalidRequest("This text is an async iterable: use `async for` on the speech.", param="text")
        ticket = self._open()
        if not isinstance(text, str):
            threading.Thread(target=_read, args=(ticket, text), name="legato-text", daemon=True).start()
        try:
            for event in ticket.events():
                if (chunk := _chunk(event)) is not None:
                    yield chunk
        finally:
            ticket.cancel()

    async def __aiter__(self) -> AsyncIterator[Audio]:
        """Yield chunks as they are made; an async text is read on this event loop.

        Raises:
            LegatoError: the speech failed. What the text's own iterator raises is raised here too.
        """
        text = self._text
        ticket = self._open()
        reading: asyncio.Task[None] | None = None
        if isinstance(text, AsyncIterable):
            reading = asyncio.create_task(_read_async(ticket, text))
        elif not isinstance(text, str):
            threading.Thread(target=_read, args=(ticket, text), name="legato-text", daemon=True).start()
        try:
            async for event in ticket.events_async():
                if (chunk := _chunk(event)) is not None:
                    yield chunk
        finally:
            ticket.cancel()
            if reading is not None:
                reading.cancel()

    def audio(self) -> Pcm:
        """The whole speech as one array, float32, shape (samples,).

        Raises:
            LegatoError: the speech failed.
        """
        return np.concatenate([chunk.pcm for chunk in self])

    def save(self, path: str | Path) -> Path:
        """Write a 16-bit WAV file and return its path. Nothing is written if the speech fails.

        Raises:
            LegatoError: the speech failed.
            OSError: the file cannot be written.
        """
        path = Path(path)
        path.write_bytes(WavEncoder.whole(self.audio(), self.sample_rate))
        return path

    def _open(self) -> Ticket:
        self._ticket = self._background.speak(self._options, self._text if isinstance(self._text, str) else None)
        return self._ticket


def speak(text: Text, *, voice: str = DEFAULT_VOICE, speed: float = 1.0, seed: int = 0) -> Speech:
    """Speak with a voice that is loaded on the first call and kept; see `Voice.speak`.

    Raises:
        LegatoError: a value cannot be accepted, or the voice cannot be loaded.
    """
    with _keeping:  # two threads that speak first load one voice
        kept = _kept(voice)
    return kept.speak(text, speed=speed, seed=seed)


_keeping = threading.Lock()


@functools.cache
def _kept(name: str) -> Voice:
    voice = Voice(name)
    atexit.register(voice.close)
    return voice


def _chunk(event: Event) -> Audio | None:
    if isinstance(event, Failed):
        raise error_for(event.code, event.message)
    return event if isinstance(event, Audio) else None


def _piece(text: object) -> str:
    if not isinstance(text, str):
        raise InvalidRequest(f"The text's pieces must be strings, not {type(text).__name__}.", param="text")
    return text


def _read(ticket: Ticket, pieces: Iterable[str]) -> None:
    """Feed a stream from an iterable, on a thread of its own, until the text or the stream ends."""
    try:
        for piece in pieces:
            fed = ticket.feed(_piece(piece))
            try:
                fed.result()
            except (Cancelled, CancelledError):
                return  # the stream is over: nobody wants more
        ticket.end()
    except Exception as error:
        ticket.fail(error)


async def _read_async(ticket: Ticket, pieces: AsyncIterable[str]) -> None:
    """The same on the caller's event loop."""
    try:
        async for piece in pieces:
            fed = ticket.feed(_piece(piece))
            try:
                await asyncio.wrap_future(fed)
            except Cancelled:
                return
        ticket.end()
    except asyncio.CancelledError:  # from the text itself, or because the listener left
        ticket.cancel()
        raise
    except Exception as error:
        ticket.fail(error)
