r"""Cuts text that is still being written into segments that can be spoken.

Theory of operation: one automaton reads every code point once, left to right, so the segments cannot depend on
how the text was cut into pushes. After a hard cut it goes back to the cut, less than `hard_max` code points.

                   non-space                punctuation               white space, and the end is in doubt
    LEADING ────────────────► TEXT ───────────────────────► MARKS ──────────────────────────────► GAP
       ▲                       │ ▲ ◄──── no boundary ──────── │                                    │
       │                       │ └─────────── the sentence goes on ───────────────────────────────┤
       │                       ▼ line break                   │ certain                            │ certain
       └──────── emit ◄────── LINE (blank line or not?)       └──────────────► emit ◄──────────────┘

At the end of what was written MARKS, GAP and LINE cannot be decided yet; a pause of the writer decides them.
"""

import re
from enum import Enum, Flag, auto
from typing import Final, Protocol

from legato.core.events import Boundary, Segment

_ENDS: Final = frozenset(".!?…؟۔।॥。！？｡")
_CLAUSES: Final = frozenset(",;:—–،؛、，；：")
_WIDE: Final = frozenset("。！？｡、，；：")  # no white space follows these
_CLOSERS: Final = frozenset("\"')]}”’»›」』）》】〉］｝*_`~")  # with what closes emphasis in Markdown
_OPENERS: Final = "\"'([{“‘«‹「『（《【*_`~"
_LINE_BREAKS: Final = frozenset("\r\n")
_IN_RUN: Final = _ENDS | _CLAUSES | _CLOSERS
_STOP: Final = re.compile(r"[\s" + re.escape("".join(sorted(_ENDS | _CLAUSES))) + "]")
_LIST_MARKER: Final = re.compile(r"[\W_]*(?:\d{1,3}|[A-Za-z])")
_DOTTED: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")

# Another word always follows these: not even a pause ends a sentence here.
_TITLES: Final = frozenset(
    "dr mr mrs ms mx prof rev hon gen col maj capt cmdr lt sgt cpl sen rep gov pres messrs mme mlle "
    "e.g i.e eg ie vs cf viz".split()
)
# These end a sentence unless it visibly goes on, with a small letter or a digit.
_ABBREVIATIONS: Final = frozenset(
    "jr sr inc ltd co corp bros dept est etc al approx ca fig figs vol vols ch sec eq p pp ed eds ext tel ave blvd "
    "jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n e.u u.s.a a.m p.m b.c a.d b.c.e c.e d.c o.k "
    "ph.d m.d b.a m.a b.sc m.sc".split()
)
_NUMERO: Final = frozenset({"no", "nos"})  # otherwise the answer "No."


class _State(Enum):
    LEADING = auto()  # white space before a segment
    TEXT = auto()
    MARKS = auto()  # in a run of punctuation that may end a segment
    GAP = auto()  # in the white space after a run that may or may not have ended a sentence
    LINE = auto()  # after a line break


class _GoesOn(Flag):
    """What shows, coming after a full stop, that the sentence had not ended."""

    NOTHING = 0
    LOWER = auto()
    DIGIT = auto()
    OTHER = auto()
    PAUSE = auto()  # not even a pause of the writer ends it


_WHATEVER: Final = _GoesOn.LOWER | _GoesOn.DIGIT | _GoesOn.OTHER
_NO_END: Final = _WHATEVER | _GoesOn.PAUSE


class Segmenter(Protocol):
    """Cuts one text, as it is written, into segments. Time is an argument; asking changes nothing."""

    def push(self, text: str, now: float) -> list[Segment]:
        """Add text written at `now` (seconds); return the segments that are certain."""
        ...

    def flush(self, now: float) -> list[Segment]:
        """The text has ended: return what is left."""
        ...

    def timer(self) -> float | None:
        """Absolute time from which `tick` gives something if nobody writes; None if it would give nothing."""
        ...

    def tick(self, now: float) -> list[Segment]:
        """Return what the writer's pause up to `now` has completed."""
        ...


class PlainSegmenter:
    """Segments at sentences and lines; the first one may end at a clause, so that speech can start early.

    Offsets are code points in everything that was pushed, tight around the stripped text. Text without a single
    letter or digit joins the segment that follows it on its line, or is skipped.

    Args:
        first_min: from this many code points on, the first segment may end at a clause.
        hard_max: a longer segment is cut at its last clause, else at its last white space, else exactly here.
        patience: seconds without a push after which a sentence that looks complete is taken as complete.

    Raises:
        ValueError: `hard_max` is below 1, or `first_min` or `patience` is negative.
    """

    def __init__(self, first_min: int = 24, hard_max: int = 240, patience: float = 0.25) -> None:
        if hard_max < 1 or first_min < 0 or not patience >= 0:
            raise ValueError(f"need hard_max >= 1, first_min >= 0, patience >= 0: {hard_max}, {first_min}, {patience}")
        self._first_min = first_min
        self._hard_max = hard_max
        self._patience = patience
        self._text = ""  # received[base:]
        self._base = 0  # this and all that follow: code points in everything received
        self._at = 0  # the next to read
        self._start = 0  # of the segment
        self._word = 0  # after the last white space of the segment
        self._run = 0  # start of the last run of punctuation
        self._stop = 0  # in GAP and LINE: where the segment ends, if it ends
        self._clause = 0  # last place in the segment to cut at a clause; the start if none
        self._space = 0  # last white space in the segment; the start if none
        self._state = _State.LEADING
        self._line_start = True  # the segment is the first of its line
        self._voiced = False  # the segment has a letter or digit
        self._mark = Boundary.SENTENCE  # what the run of punctuation stands for
        self._wide = False  # the run needs no white space after it
        self._goes_on = _GoesOn.NOTHING
        self._line_breaks = 0
        self._index = 0
        self._written_at = 0.0
        self._ended = False

    def push(self, text: str, now: float) -> list[Segment]:
        """Add text written at `now` (seconds); return the segments that are certain.

        Raises:
            ValueError: `flush` was called before.
        """
        if self._ended:
            raise ValueError("push after flush: the text has ended")
        if not text:
            return []
        self._written_at = now
        self._text += text
        out: list[Segment] = []
        end = self._base + len(self._text)
        while self._at < end:
            self._read(self._text[self._at - self._base], out)
        keep = self._at if self._state is _State.LEADING else self._start
        self._text = self._text[keep - self._base :]
        self._base = keep
        return out

    def flush(self, now: float) -> list[Segment]:  # noqa: ARG002 - as every event has its time
        """The text has ended: return what is left, with `Boundary.END`. Calling it again gives nothing."""
        out: list[Segment] = []
        if self._state is not _State.LEADING:
            self._emit(out, self._at, Boundary.END)
        self._ended = True
        self._text = ""
        return out

    def timer(self) -> float | None:
        """Absolute time from which `tick` gives something if nobody writes; None if it would give nothing."""
        return None if self._complete() is None else self._written_at + self._patience

    def tick(self, now: float) -> list[Segment]:
        """Return the sentence, or the clause that may be the first segment, that a pause up to `now` completes."""
        out: list[Segment] = []
        complete = self._complete()
        if complete is not None and now >= self._written_at + self._patience:
            self._line_start = self._state is _State.LINE
            self._emit(out, *complete)
        return out

    def _complete(self) -> tuple[int, Boundary] | None:
        """Where the segment ends if nothing more is written for a while."""
        if self._state is _State.LINE or (self._state is _State.GAP and _GoesOn.PAUSE not in self._goes_on):
            return self._stop, Boundary.SENTENCE
        if self._state is _State.MARKS and self._voiced:
            if self._mark is Boundary.CLAUSE:
                return (self._at, Boundary.CLAUSE) if self._may_end_at_clause() else None
            return None if _GoesOn.PAUSE in self._doubt() else (self._at, Boundary.SENTENCE)
        return None

    def _read(self, char: str, out: list[Segment]) -> None:
        """Let the current state read the code point at `_at`; it may leave it to the next state."""
        match self._state:
            case _State.LEADING:
                self._read_leading(char)
            case _State.TEXT:
                self._read_text(char, out)
            case _State.MARKS:
                self._read_marks(char, out)
            case _State.GAP:
                self._read_gap(char, out)
            case _:
                self._read_line(char, out)

    def _read_leading(self, char: str) -> None:
        if char.isspace():
            self._line_start = self._line_start or char in _LINE_BREAKS
            self._at += 1
        else:
            self._start = self._word = self._clause = self._space = self._at
            self._voiced = False
            self._state = _State.TEXT

    def _read_text(self, char: str, out: list[Segment]) -> None:
        room = self._start + self._hard_max
        if self._at < room:
            # Almost all text is plain: let the regex engine find the next code point that matters.
            found = _STOP.search(self._text, self._at - self._base, room - self._base)
            stop = self._base + found.start() if found else min(room, self._base + len(self._text))
            if stop > self._at:
                self._voiced = self._voiced or any(map(str.isalnum, self._slice(self._at, stop)))
                self._at = stop
                return
        if char in _LINE_BREAKS:
            self._stop = self._at
            self._line_breaks = 0
            # A line of dashes is nothing to speak, and nothing to wait for.
            self._state = _State.LINE if self._voiced else _State.LEADING
            return
        if char.isspace():
            self._pass_space()
        if self._at >= room:
            self._cut(out)
        elif not char.isspace():
            self._run = self._at
            self._wide = False
            self._state = _State.MARKS
        else:
            self._at += 1

    def _read_marks(self, char: str, out: list[Segment]) -> None:
        if char in _IN_RUN:
            if self._at >= self._start + self._hard_max:
                self._cut(out)
                return
            if char not in _CLOSERS:
                self._mark = Boundary.CLAUSE if char in _CLAUSES else Boundary.SENTENCE
                self._wide = self._wide or char in _WIDE
            self._at += 1
            return
        self._state = _State.TEXT
        if not self._voiced or char in _LINE_BREAKS or not (self._wide or char.isspace()):
            return
        if self._mark is Boundary.CLAUSE:
            if self._may_end_at_clause():
                self._end_inside_line(out, self._at, Boundary.CLAUSE)
            else:
                self._clause = self._at
            return
        self._goes_on = self._doubt()
        if self._goes_on is _GoesOn.NOTHING:
            self._end_inside_line(out, self._at, Boundary.SENTENCE)
        else:
            self._stop = self._at
            self._state = _State.GAP

    def _read_gap(self, char: str, out: list[Segment]) -> None:
        if char in _LINE_BREAKS:
            self._state = _State.TEXT
        elif char.isspace():
            self._pass_space()
            self._at += 1
            if self._at - self._stop >= self._hard_max:  # so much white space is an end, and memory is bounded
                self._end_inside_line(out, self._stop, Boundary.SENTENCE)
        else:
            kind = _GoesOn.LOWER if char.islower() else _GoesOn.DIGIT if char.isdigit() else _GoesOn.OTHER
            if kind in self._goes_on:
                self._state = _State.TEXT
            else:
                self._end_inside_line(out, self._stop, Boundary.SENTENCE)

    def _read_line(self, char: str, out: list[Segment]) -> None:
        self._line_start = True
        if not char.isspace():
            self._emit(out, self._stop, Boundary.SENTENCE)
            return
        self._line_breaks += char == "\n"
        self._at += 1
        if self._line_breaks == 2:
            self._emit(out, self._stop, Boundary.PARAGRAPH)
        elif self._at - self._stop >= self._hard_max:
            self._emit(out, self._stop, Boundary.SENTENCE)

    def _pass_space(self) -> None:
        self._space = self._at
        self._word = self._at + 1

    def _may_end_at_clause(self) -> bool:
        return self._index == 0 and self._at - self._start >= self._first_min

    def _doubt(self) -> _GoesOn:
        """What would show that the sentence goes on after the run of punctuation that ends at `_at`."""
        if self._wide:
            return _GoesOn.NOTHING
        run = self._slice(self._run, self._at)
        marks = "".join(char for char in run if char not in _CLOSERS)
        doubt = self._doubt_of_word() if marks == "." else _GoesOn.NOTHING
        if doubt is _GoesOn.NOTHING and (len(marks) < len(run) or ".." in marks or "…" in marks):
            doubt = _GoesOn.LOWER  # `"Stop!" he said`, `well... yes`
        return doubt

    def _doubt_of_word(self) -> _GoesOn:
        """The same for a single full stop, judged by the word in front of it."""
        if self._line_start and _LIST_MARKER.fullmatch(self._slice(self._start, self._run)):
            return _WHATEVER  # but "42." and silence is an answer
        word = self._slice(self._word, self._run).lstrip(_OPENERS)
        lower = word.lower()
        if lower in _TITLES:
            return _NO_END
        if lower == "st" or (len(word) == 1 and word.isupper()):  # a saint or an initial, except in "so do I."
            before = self._slice(self._start, self._word).split()
            return _GoesOn.NOTHING if word == "I" and before and before[-1].islower() else _WHATEVER
        if lower in _ABBREVIATIONS:
            return _GoesOn.LOWER | _GoesOn.DIGIT
        if lower in _NUMERO:
            return _GoesOn.DIGIT
        if _DOTTED.fullmatch(word):
            return _WHATEVER if word.isupper() else _GoesOn.LOWER | _GoesOn.DIGIT
        return _GoesOn.NOTHING

    def _cut(self, out: list[Segment]) -> None:
        """Cut a segment that is too long, and read on from the cut."""
        if self._clause > self._start:
            self._at, boundary = self._clause, Boundary.CLAUSE
        elif self._space > self._start:
            self._at, boundary = self._space, Boundary.PHRASE
        else:
            self._at, boundary = self._start + self._hard_max, Boundary.PHRASE
        self._end_inside_line(out, self._at, boundary)

    def _end_inside_line(self, out: list[Segment], end: int, boundary: Boundary) -> None:
        self._line_start = False
        self._emit(out, end, boundary)

    def _emit(self, out: list[Segment], end: int, boundary: Boundary) -> None:
        text = self._slice(self._start, end).rstrip()
        if any(map(str.isalnum, text)):
            out.append(Segment(self._index, text, self._start, self._start + len(text), boundary))
            self._index += 1
        self._state = _State.LEADING

    def _slice(self, start: int, end: int) -> str:
        return self._text[start - self._base : end - self._base]
