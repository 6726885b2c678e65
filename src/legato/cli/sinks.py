"""Where the command line puts sound: a WAV file, standard output, a sound card."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Protocol

from legato.core.events import Pcm
from legato.errors import InvalidRequest, MissingExtra
from legato.wire.pcm import s16le
from legato.wire.wav import wav_header

_TO_FILE = "Or write a file: -o FILE.wav"


class Sink(Protocol):
    """Takes the samples of one speech."""

    def write(self, pcm: Pcm, sample_rate: int) -> None:
        """Take the next samples. A sound card takes them no faster than it plays."""
        ...

    def close(self, *, complete: bool) -> None:
        """No samples follow; `complete` says whether the speech is."""
        ...


class WavSink:
    """A WAV file that can be read at any time, and has exact sizes once it is closed, if it can be sought.

    Nothing is opened before the first samples, so a speech that fails at once leaves an existing file alone.

    Args:
        path: of the file, or None for standard output.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._sample_rate = 0
        self._start = 0  # where the header is: others may have written to standard output before

    def write(self, pcm: Pcm, sample_rate: int) -> None:
        """Append samples, and hand them on at once."""
        if self._file is None:
            self._file = sys.stdout.buffer if self._path is None else self._path.open("wb")
            self._sample_rate = sample_rate
            if _can_be_patched(self._file):
                self._start = self._file.tell()
            self._file.write(wav_header(sample_rate))
        self._file.write(s16le(pcm))
        self._file.flush()

    def close(self, *, complete: bool) -> None:  # noqa: ARG002 - what there is is a valid file
        """Put the sizes right."""
        if self._file is None:
            return
        if _can_be_patched(self._file):
            # What is in the file counts, not what was meant to be: an interruption may come between the two.
            length = self._file.seek(0, os.SEEK_END) - self._start
            samples = max(0, length - len(wav_header(self._sample_rate))) // 2
            self._file.seek(self._start)
            self._file.write(wav_header(self._sample_rate, samples))
            self._file.truncate(self._file.tell() + 2 * samples)
            self._file.seek(0, os.SEEK_END)
        self._file.flush()
        if self._path is not None:
            self._file.close()


def _can_be_patched(file: BinaryIO) -> bool:
    """Whether it is a file whose beginning can be written again (not `>>`, not a pipe, not a device)."""
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return False
    if sys.platform == "win32":
        return True
    from fcntl import F_GETFL, fcntl

    return not fcntl(file.fileno(), F_GETFL) & os.O_APPEND


class Player:
    """The default sound card, playing while the speech is made.

    It starts with the first chunk (150 ms of sound). A `write` waits until the card has room, so at most its own
    buffer and the chunk at hand lie between the maker and the ear; the maker works on in the meantime.

    Raises:
        MissingExtra: `sounddevice`, PortAudio or a sound card is missing; the message says what to do.
    """

    def __init__(self) -> None:
        self._sounddevice = _sounddevice()
        self._stream: Any = None

    def write(self, pcm: Pcm, sample_rate: int) -> None:
        """Play the next samples."""
        if self._stream is None:
            try:
                self._stream = self._sounddevice.OutputStream(samplerate=sample_rate, channels=1, dtype="float32")
                self._stream.start()
            except self._sounddevice.PortAudioError as error:
                raise MissingExtra(f"The sound card cannot be used: {error}. {_TO_FILE}") from None
        self._stream.write(pcm.reshape(-1, 1))

    def close(self, *, complete: bool) -> None:
        """Wait until the last sample was heard, or be silent at once."""
        if self._stream is not None:
            (self._stream.stop if complete else self._stream.abort)()
            self._stream.close()


def _sounddevice() -> ModuleType:
    try:
        import sounddevice
    except ImportError:
        raise MissingExtra(f"Playing needs one more package: pip install 'legato-speech[play]'. {_TO_FILE}") from None
    except OSError:
        raise MissingExtra(
            f"Playing needs the library PortAudio; on Debian and Ubuntu: apt-get install libportaudio2. {_TO_FILE}"
        ) from None
    try:
        sounddevice.query_devices(kind="output")
    except (ValueError, sounddevice.PortAudioError):
        raise MissingExtra(f"There is no sound card to play on. {_TO_FILE}") from None
    module: ModuleType = sounddevice
    return module


@contextmanager
def open_sinks(output: str | None, *, play: bool) -> Iterator[list[Sink]]:
    """Give the sinks for a file name, `-` or None, and for the sound card; close them whatever happens.

    Raises:
        InvalidRequest: the audio would go to a terminal.
        MissingExtra: it cannot be played here.
    """
    if output == "-" and sys.stdout.isatty():
        raise InvalidRequest("Standard output is a terminal. Redirect it, as in: legato say TEXT -o - > FILE.wav")
    sinks: list[Sink] = []
    if output is not None:
        sinks.append(WavSink(None if output == "-" else Path(output)))
    if play:
        sinks.append(Player())
    complete = False
    try:
        yield sinks
        complete = True
    finally:
        for sink in sinks:
            sink.close(complete=complete)
