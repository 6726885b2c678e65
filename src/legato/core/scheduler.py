"""Which streams the engine advances next: those whose listeners run dry first."""

from collections.abc import Iterable
from typing import Protocol, TypeVar


class Runnable(Protocol):
    """What the scheduler needs to see of a session."""

    @property
    def wants_audio(self) -> bool:
        """False when enough audio waits already, or no text does."""
        ...

    def deadline(self, now: float) -> float:
        """By when the next audio must be made, in seconds on the clock of `now`."""
        ...


T = TypeVar("T", bound=Runnable)


def pick(sessions: Iterable[T], now: float, max_batch: int) -> list[T]:
    """Up to `max_batch` of the sessions that want audio, earliest deadline first; equals keep their order."""
    ready = [session for session in sessions if session.wants_audio]
    ready.sort(key=lambda session: session.deadline(now))
    return ready[:max_batch]
