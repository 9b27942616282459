"""Timers of one thread: what is due is done, one after the other, and nobody wakes for nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.clock import Clock
from shared.jobs.work import Work


@dataclass(slots=True)
class Timer:
    """Something to do every `seconds`, or sooner when it says so.

    Attributes:
        seconds: between two times.
        act: does it; answers in how many seconds it is to be done again, or None = as usual.
        holding: it is about claims that are held: while there are none, nobody wakes for it.
        at: when it is due (monotonic).
    """

    seconds: float
    act: Callable[[Work], float | None]
    holding: bool = False
    at: float = 0.0


class Timers:
    """Some timers, in the order in which they act when several are due.

    Args:
        clock: for when they are due.
        each: the timers; all are due at once.
    """

    def __init__(self, clock: Clock, each: Sequence[Timer]) -> None:
        self._clock = clock
        self._each = each

    def all_due(self) -> None:
        """Have all of them act with the next turn."""
        for timer in self._each:
            timer.at = 0.0

    def turn(self, work: Work) -> None:
        """Have those act that are due."""
        for timer in self._each:
            now = self._clock.monotonic()
            if timer.at <= now:
                timer.at = now + timer.seconds
                sooner = timer.act(work)
                if sooner is not None:
                    timer.at = min(timer.at, now + max(0.0, sooner))

    def waits(self, *, holding: bool) -> float:
        """Seconds until one is due; those about held claims count if there are any."""
        due = min(timer.at for timer in self._each if holding or not timer.holding)
        return max(0.0, due - self._clock.monotonic())
