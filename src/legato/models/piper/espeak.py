"""Text to IPA with the espeak-ng program, kept running as a process of its own (its code is under the GPL).

    text ─► clauses, cut at punctuation ─► a line each ─► espeak-ng ─► IPA, a line per clause ─► joined with the marks
                                    └─ and a marker line ─────────────► the marker's IPA: the answer is complete

The program reads a line, writes no, one or several lines for it, and says nothing when it is done. So each question is
followed by a marker: phonemes in [[ ]], which espeak-ng speaks as they are. They are drawn by chance when the process
starts, and brackets are taken out of the text, so no text can pass for the marker. The program does not tell how a
clause ended either (Piper asks the library, which does), so the text is cut here; where a full stop may be part of an
abbreviation or an ordinal ("e.g. this", "am 5. mai"), the program is asked whether it hears one clause or two.
"""

import os
import re
import secrets
import select
import shutil
import subprocess
import time
import weakref
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from legato.errors import EngineFailed, MissingExtra, VoiceFileError

_TIME_LIMIT = 10.0
_LINE_BYTES = 400
"""Of a question: the program reads 999 bytes of a line at once, and leaves out what is over 1000 phonemes."""

_MARKS = {
    **{mark: mark for mark in ".,!?;:"},
    **dict(zip("。．।，、،！？؟；؛：…—–", "...,,,!??;;:;;;", strict=True)),
}
_WIDE = "。．।，、！？；：…—–"  # these end a clause without a space after them
_BORDER = re.compile(
    rf"""(?P<marks>[{"".join(_MARKS)}]+) (?: [\])}}"'”’»]* (?:\s+|$) | (?<=[{_WIDE}]) )""",
    re.VERBOSE,
)
_UNWRITTEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\[\]]")
_LONG_WORD = re.compile(r"(\S{40,}?)(?=\w)")  # the program drops the end of one; Japanese has no spaces
_LANGUAGE = re.compile(r"\([^)\s]*\)")  # "(en)mˈeɪl(de)"


def find_program() -> str | None:
    """Where the espeak-ng program is, None when it is not installed."""
    return shutil.which("espeak-ng")


class EspeakPhonemizer:
    """Reads text in the language of an espeak-ng voice (`de`, `fr-fr`).

    Safe to use from several threads: each call has a process to itself, and there are as many as there were calls at
    the same time. They end with `close()`, with this object, or with this process. Needs a POSIX system.
    """

    def __init__(self, voice: str, program: str | None = None) -> None:
        """Starts the first process, so that a voice that cannot be used shows now.

        Raises:
            MissingExtra: there is no such program.
            VoiceFileError: espeak-ng has no such voice.
        """
        found = program or find_program()
        if found is None:
            raise MissingExtra("espeak-ng is not installed; install it, for example with: apt-get install espeak-ng")
        self._voice = voice
        self._program = found
        self._idle: deque[_Process] = deque()  # its pop and append are atomic
        self._closed = False
        self._finalizer = weakref.finalize(self, _end_all, self._idle)
        try:
            self._idle.append(_Process(found, voice))
        except OSError as error:
            raise MissingExtra(f"{found} cannot be started ({error.strerror}); install espeak-ng") from None
        except _ProcessDied:
            raise VoiceFileError(f"espeak-ng has no voice {voice!r}, or its data is damaged") from None

    def phonemes(self, text: str) -> str:
        """IPA of the text: words between spaces, one of .,!?;: at the end of a clause; "" when nothing is spoken.

        Raises:
            EngineFailed: the program died twice, did not answer in 10 seconds, or the phonemizer is closed.
        """
        if self._closed:
            raise EngineFailed("the phonemizer is closed")
        try:
            try:
                return self._read(text)
            except _ProcessDied:
                return self._read(text)
        except _ProcessDied:
            raise EngineFailed("espeak-ng ended while it was reading; is it installed as a whole?") from None
        except TimeoutError:
            raise EngineFailed(f"espeak-ng did not answer in {_TIME_LIMIT:.0f} seconds") from None
        except OSError as error:
            raise EngineFailed(f"espeak-ng cannot be started: {error.strerror}") from None

    def close(self) -> None:
        """End the processes; those in use end with their call. May be called again."""
        self._closed = True
        _end_all(self._idle)

    def _read(self, text: str) -> str:
        process = self._take()
        try:
            ipa = _read(process, text)
        except BaseException:
            process.end()
            raise
        self._idle.append(process)
        if self._closed:  # meanwhile, and close() may not have seen it
            _end_all(self._idle)
        return ipa

    def _take(self) -> "_Process":
        """A process that runs: an idle one, else a new one."""
        while True:
            try:
                process = self._idle.pop()
            except IndexError:
                return _Process(self._program, self._voice)
            if process.is_alive():
                return process
            process.end()


class _ProcessDied(Exception):
    """The program ended before it had answered."""


class _Process:
    """One running espeak-ng, used by one call at a time."""

    def __init__(self, program: str, voice: str) -> None:
        command = [program, "-q", "--ipa", "-b", "1", f"-v{voice}"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,  # Ctrl-C is for Legato, which ends its processes itself
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._ready = select.poll()
        self._ready.register(self._output, select.POLLIN)
        self._unread = b""
        self._question = "[[" + "".join(secrets.choice("ptk") for _ in range(24)) + "]]\n"
        try:
            deadline = time.monotonic() + _TIME_LIMIT
            self._send(self._question)
            self._marker = self._line(deadline)
        except BaseException:
            self.end()
            raise

    def ask(self, clause: str) -> list[str]:
        """The IPA of one line of text, as the lines that the program makes of it."""
        deadline = time.monotonic() + _TIME_LIMIT
        self._send(f"{clause}\n{self._question}")
        out = []
        while (line := self._line(deadline)) != self._marker:
            out.append(_LANGUAGE.sub("", line))
        return [line for line in out if line]

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._input.close()
        self._output.close()

    def _send(self, text: str) -> None:
        # Less than a pipe holds, and the program has read what came before: this never blocks.
        try:
            self._input.write(text.encode())
        except BrokenPipeError:
            raise _ProcessDied from None

    def _line(self, deadline: float) -> str:
        """The next line that is not empty."""
        while True:
            line, newline, rest = self._unread.partition(b"\n")
            if newline:
                self._unread = rest
                if line.strip():
                    return line.decode(errors="replace").strip()
                continue
            left_ms = (deadline - time.monotonic()) * 1000
            if left_ms <= 0 or not self._ready.poll(left_ms):
                raise TimeoutError
            received = os.read(self._output.fileno(), 65536)
            if not received:
                raise _ProcessDied
            self._unread += received


def _read(process: _Process, text: str) -> str:
    """Asks for the clauses of the text and puts the marks between them back."""
    spoken: list[_Clause] = []
    for clause, mark in _clauses(_LONG_WORD.sub(r"\1 ", _UNWRITTEN.sub(" ", text))):
        lines = _ask(process, clause)
        if spoken and spoken[-1].may_go_on and not clause[0].isupper():
            last = spoken[-1]
            both = f"{last.text} {clause}"
            if len(both.encode()) <= _LINE_BYTES and len(joined := process.ask(both)) < len(last.lines) + len(lines):
                spoken[-1] = _Clause(both, mark, joined)
                continue
        spoken.append(_Clause(clause, mark, lines))
    return " ".join(" ".join(clause.lines) + clause.mark for clause in spoken if clause.lines)


@dataclass(frozen=True)
class _Clause:
    text: str
    mark: str
    lines: list[str]

    @property
    def may_go_on(self) -> bool:
        """Whether its full stop may be something else."""
        return self.text.endswith(".") and not self.text.endswith("..")


def _clauses(text: str) -> list[tuple[str, str]]:
    """The text cut after its punctuation, each part with the mark that Piper writes for it ("" at an open end)."""
    out = []
    start = 0
    for border in _BORDER.finditer(text):
        out.append((text[start : border.end()].strip(), _mark(border["marks"])))
        start = border.end()
    out.append((text[start:].strip(), ""))
    return [(clause, mark) for clause, mark in out if clause]


def _mark(marks: str) -> str:
    """Of several marks, a question counts before a shout, and that before the first of them."""
    found = [_MARKS[mark] for mark in marks]
    return next((mark for mark in "?!" if mark in found), found[0])


def _ask(process: _Process, clause: str) -> list[str]:
    """The IPA of a clause of any length."""
    return [line for part in _parts(clause) for line in process.ask(part)]


def _parts(clause: str) -> list[str]:
    """The clause in parts of 400 bytes at most, cut at spaces where there are any."""
    out = []
    while len(clause.encode()) > _LINE_BYTES:
        longest = len(clause.encode()[:_LINE_BYTES].decode(errors="ignore"))
        cut = clause.rfind(" ", 1, longest) if " " in clause[1:longest] else longest
        out.append(clause[:cut])
        clause = clause[cut:].lstrip()
    return [*out, clause]


def _end_all(processes: deque[_Process]) -> None:
    with suppress(IndexError):  # not `while processes`: another thread may take the last one
        while True:
            processes.pop().end()
