"""The library with the real voice: every way of giving text and of taking sound."""

import asyncio
import subprocess
import sys
import threading
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import legato
from legato.core.events import Pcm
from legato.core.trace import report
from legato.errors import (
    Cancelled,
    InvalidRequest,
    LegatoError,
    NothingToSpeak,
    NotReady,
    TextTooLong,
    UnknownModel,
    UnknownVoice,
)

TEXT = "Hello there, how are you? I am fine, thank you. It is number 42"


@pytest.fixture(scope="module")
def expected(voice: legato.Voice) -> Pcm:
    return voice.speak(TEXT, seed=5).audio()


def words(text: str) -> Iterator[str]:
    for index, word in enumerate(text.split(" ")):
        yield word if index == 0 else f" {word}"


async def later(text: str) -> AsyncIterator[str]:
    for piece in words(text):
        await asyncio.sleep(0)
        yield piece


async def gather(speech: legato.Speech) -> Pcm:
    return np.concatenate([chunk.pcm async for chunk in speech])


def steps(voice: legato.Voice) -> int:
    return voice._background._service.steps


def quiet(voice: legato.Voice) -> None:
    """Wait until no stream is served any more."""
    while voice._background._service.active:
        voice._background.call(asyncio.sleep(0))


# Taking sound.


def test_chunks(voice: legato.Voice) -> None:
    speech = voice.speak(TEXT)
    assert speech.trace is None
    chunks = list(speech)
    assert len(chunks) > 2
    assert [chunk.start for chunk in chunks] == [0, *(chunk.end for chunk in chunks)][: len(chunks)]
    for chunk in chunks:
        assert isinstance(chunk, legato.Audio)
        assert chunk.pcm.dtype == np.float32
        assert np.abs(chunk.pcm).max() <= 1
        assert 0 <= chunk.span[0] < chunk.span[1] <= len(TEXT)
    assert chunks[0].segment_start
    assert chunks[-1].segment_end
    assert chunks[-1].span[1] == len(TEXT)
    assert speech.trace is not None
    assert report(speech.trace).audio == chunks[-1].end / speech.sample_rate
    assert (speech.sample_rate, voice.name, voice.info.name) == (24_000, "heart", "hibari")


@pytest.mark.parametrize("source", ["str", "words", "characters", "list", "one", "empties", "async"])
@pytest.mark.parametrize("loop", [False, True])
def test_the_same_samples_however_delivered(voice: legato.Voice, expected: Pcm, source: str, loop: bool) -> None:
    sources: dict[str, Any] = {
        "str": TEXT,
        "words": words(TEXT),
        "characters": iter(TEXT),
        "list": list(words(TEXT)),
        "one": (TEXT,),
        "empties": ["", *TEXT, "", ""],
        "async": later(TEXT),
    }
    speech = voice.speak(sources[source], seed=5)
    if source == "async" and not loop:
        with pytest.raises(InvalidRequest, match="async for"):
            next(iter(speech))
        return
    assert np.array_equal(asyncio.run(gather(speech)) if loop else speech.audio(), expected)


def test_seed_and_speed(voice: legato.Voice, expected: Pcm) -> None:
    other = voice.speak(TEXT, seed=6).audio()
    assert len(other) == len(expected)
    assert not np.array_equal(other, expected)
    assert 1.7 < len(expected) / len(voice.speak(TEXT, speed=2).audio()) < 2.2


def test_a_string_may_be_spoken_twice(voice: legato.Voice) -> None:
    speech = voice.speak("Again and again.")
    assert np.array_equal(speech.audio(), speech.audio())


def test_an_iterator_is_used_up(voice: legato.Voice) -> None:
    speech = voice.speak(iter(["Only once."]))
    assert len(speech.audio())
    with pytest.raises(NothingToSpeak):
        speech.audio()


def test_save(voice: legato.Voice, expected: Pcm, tmp_path: Path) -> None:
    for name in (tmp_path / "hello.wav", str(tmp_path / "again.wav")):
        path = voice.speak(TEXT, seed=5).save(name)
        assert isinstance(path, Path)
        with wave.open(str(path)) as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24_000)
            assert file.getnframes() == len(expected)
            pcm = np.frombuffer(file.readframes(len(expected)), "<i2")
        assert path.stat().st_size == 44 + 2 * len(expected)
        np.testing.assert_allclose(pcm / 32768, expected, atol=1e-4)


def test_nothing_is_saved_when_it_fails(voice: legato.Voice, tmp_path: Path) -> None:
    with pytest.raises(NothingToSpeak):
        voice.speak("你好").save(tmp_path / "hello.wav")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="no such folder"):
        voice.speak("Hello.").save(tmp_path / "no such folder" / "hello.wav")


# Giving text.


def test_speaks_while_the_text_is_still_being_written(voice: legato.Voice) -> None:
    heard = threading.Event()

    def write() -> Iterator[str]:
        yield "The first sentence is complete. And"
        assert heard.wait(20), "no sound came while the text was being written"
        yield " the second one was written after it was heard."

    spans = []
    for chunk in voice.speak(write()):
        spans.append(chunk.span)
        heard.set()
    assert spans[0] == (0, 31)
    assert spans[-1][1] == 82


def test_speaks_while_an_async_text_is_still_being_written(voice: legato.Voice) -> None:
    async def work() -> None:
        heard = asyncio.Event()

        async def write() -> AsyncIterator[str]:
            yield "The first sentence is complete. And"
            async with asyncio.timeout(20):
                await heard.wait()
            yield " the second."

        async for _ in voice.speak(write()):
            heard.set()

    asyncio.run(work())


def test_thousands_of_tiny_deltas(voice: legato.Voice) -> None:
    deltas = [" ", *("Go. " * 30), *[""] * 3000]
    chunks = list(voice.speak(deltas))
    assert chunks[-1].span[1] == 120


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize("first", [[], ["One. Two"]])
def test_what_the_texts_iterator_raises_is_raised(voice: legato.Voice, first: list[str], loop: bool) -> None:
    class Broken(Exception):
        pass

    def write() -> Iterator[str]:
        yield from first
        raise Broken

    async def write_async() -> AsyncIterator[str]:
        for piece in first:
            yield piece
        raise Broken

    for source in (write, write_async) if loop else (write,):
        speech = voice.speak(source())
        with pytest.raises(Broken):
            _ = asyncio.run(gather(speech)) if loop else speech.audio()
        quiet(voice)
    assert len(voice.speak("It goes on.").audio())


def test_a_cancelled_source_is_no_endless_wait(voice: legato.Voice) -> None:
    async def write() -> AsyncIterator[str]:
        yield "One. Two"
        raise asyncio.CancelledError

    with pytest.raises(Cancelled):
        asyncio.run(gather(voice.speak(write())))


@pytest.mark.parametrize("pieces", [[1], ["good. ", None], [b"bytes"], b"bytes", {1: "a"}, [["nested"]]])
def test_pieces_must_be_strings(voice: legato.Voice, pieces: Any) -> None:
    with pytest.raises(InvalidRequest, match="pieces must be strings"):
        voice.speak(pieces).audio()
    assert len(voice.speak("It goes on.").audio())


@pytest.mark.parametrize("text", [None, 1, 1.5, object(), True])
def test_text_of_a_wrong_type(voice: legato.Voice, text: Any) -> None:
    with pytest.raises(InvalidRequest, match="text must be a string, or an iterable"):
        voice.speak(text)


@pytest.mark.parametrize("text", ["", "  \n", "...", "🙂"])
def test_nothing_to_speak(voice: legato.Voice, text: str) -> None:
    with pytest.raises(NothingToSpeak):
        voice.speak(text)
    for pieces in ([text], [], iter(text)):
        with pytest.raises(NothingToSpeak):
            voice.speak(pieces).audio()


def test_other_bad_values(voice: legato.Voice) -> None:
    with pytest.raises(TextTooLong):
        voice.speak("x" * 100_000)
    for options in ({"speed": 9}, {"speed": "fast"}, {"seed": -1}, {"seed": 0.5}):
        with pytest.raises(InvalidRequest):
            voice.speak("Hello.", **options)


@pytest.mark.parametrize(
    "text", ["9" * 60, "a-" * 120, "x" * 3000, "\x00Hello\ud800.", "Nul", "7", "mix 你好 of both", "A.B." * 60]
)
def test_odd_texts_are_spoken(voice: legato.Voice, text: str) -> None:
    assert len(voice.speak(text, speed=2).audio()) > 1000


# Stopping.


def test_leaving_the_loop_stops_the_engine(voice: legato.Voice) -> None:
    long = "This is one of very many sentences, all of them long. " * 200
    for _ in voice.speak(long):
        break
    quiet(voice)
    stopped = steps(voice)
    assert len(voice.speak("Hi.").audio())
    quiet(voice)
    alone = steps(voice) - stopped
    assert alone < 8  # the steps of "Hi." and no other


def test_leaving_an_async_loop_stops_the_engine_and_the_reading(voice: legato.Voice) -> None:
    closed = []

    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "And so on. "
                await asyncio.sleep(0)
        finally:
            closed.append(True)

    async def work() -> None:
        async for _ in voice.speak(endless()):
            break
        await asyncio.to_thread(quiet, voice)

    asyncio.run(work())
    assert closed == [True]


def test_an_endless_iterator_is_no_longer_read(voice: legato.Voice) -> None:
    before = set(threading.enumerate())

    def endless() -> Iterator[str]:
        while True:
            yield "And so on. "

    for _ in voice.speak(endless()):
        break
    for thread in set(threading.enumerate()) - before:
        thread.join(20)
        assert not thread.is_alive()


def test_a_cancelled_task_stops_the_engine(voice: legato.Voice) -> None:
    async def work() -> None:
        task = asyncio.create_task(gather(voice.speak(["Never ending. " * 50])))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    quiet(voice)


# Side by side.


def test_two_threads_speak_at_once(voice: legato.Voice, expected: Pcm) -> None:
    results: list[Pcm] = []
    threads = [threading.Thread(target=lambda: results.append(voice.speak(TEXT, seed=5).audio())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == 3
    assert all(np.array_equal(result, expected) for result in results)


def test_tasks_speak_at_once(voice: legato.Voice, expected: Pcm) -> None:
    async def work() -> list[Pcm]:
        return await asyncio.gather(*(gather(voice.speak(later(TEXT), seed=5)) for _ in range(3)))

    assert all(np.array_equal(result, expected) for result in asyncio.run(work()))


# A voice's life.


def test_a_closed_voice() -> None:
    before = set(threading.enumerate())
    with legato.Voice("heart") as voice:
        speech = voice.speak("Hello.")
        assert len(speech.audio())
        open_one = iter(voice.speak("Sentence after sentence. " * 100))
        next(open_one)
    assert set(threading.enumerate()) <= before, "a thread is left over"
    with pytest.raises(Cancelled):
        list(open_one)
    with pytest.raises(NotReady, match="closed"):
        speech.audio()
    with pytest.raises(NotReady):
        voice.speak("Hello.").audio()
    voice.close()


def test_no_such_voice_or_engine() -> None:
    before = set(threading.enumerate())
    with pytest.raises(UnknownVoice, match="heart"):
        legato.Voice("nobody")
    with pytest.raises(UnknownModel, match="hibari"):
        legato.Voice(engine="parrot")
    assert set(threading.enumerate()) <= before


def test_speak_keeps_its_voice_and_the_program_ends_cleanly() -> None:
    """In a program of its own: the kept voice lives until the end, also when a loop is left early."""
    program = """
import legato
assert len(legato.speak("Hello.").audio()) > 1000
for chunk in legato.speak("A long text. " * 100):
    break
print(legato.__version__, sorted(legato.__all__))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert legato.__version__ in done.stdout


def test_names() -> None:
    assert all(getattr(legato, name) for name in legato.__all__)
    with pytest.raises(AttributeError, match="no attribute 'sing'"):
        _ = legato.sing
    assert issubclass(NotReady, LegatoError)
