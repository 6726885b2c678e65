"""Who is served next."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legato.core.scheduler import pick


@dataclass(frozen=True)
class Waiting:
    """A stream with a deadline."""

    name: int
    due: float
    wants_audio: bool = True

    def deadline(self, now: float) -> float:
        return now + self.due


def names(due: list[float], max_batch: int) -> list[int]:
    return [one.name for one in pick([Waiting(*item) for item in enumerate(due)], 5.0, max_batch)]


def test_the_earliest_deadlines_come_first() -> None:
    assert names([3.0, 1.0, 2.0], 2) == [1, 2]
    assert names([3.0, -1.0, 0.0], 9) == [1, 2, 0]
    assert names([], 2) == []
    assert names([1.0], 0) == []


def test_equals_keep_their_order() -> None:
    assert names([1.0, 0.5, 1.0, 0.5], 4) == [1, 3, 0, 2]


def test_who_wants_nothing_is_not_asked_for_a_deadline() -> None:
    class Full:
        wants_audio = False

        def deadline(self, now: float) -> float:
            pytest.fail("asked for its deadline")

    hungry = Waiting(0, 9.0)
    assert pick(iter([Full(), hungry, Full()]), 0.0, 2) == [hungry]


# Few different deadlines, so that many are equal.
SESSIONS = st.lists(st.tuples(st.integers(-3, 3) | st.floats(allow_nan=False), st.booleans()), max_size=12)


@given(SESSIONS, st.integers(0, 14))
def test_equals_one_selection_after_the_other(values: list[tuple[float, bool]], max_batch: int) -> None:
    sessions = [Waiting(name, due, wants) for name, (due, wants) in enumerate(values)]
    left = [session for session in sessions if session.wants_audio]
    expected = []
    while left and len(expected) < max_batch:
        expected.append(min(left, key=lambda session: (session.due, session.name)))
        left.remove(expected[-1])
    assert pick(iter(sessions), 0.0, max_batch) == expected
