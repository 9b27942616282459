"""PORT of the outbox's other end: what the relay asks of the database.

Stands after `port.Recorder` (an event was recorded and is pending) and before the port Jobs (it has
become jobs). The adapter is shared.postgres.events.relay; relay.relay_pass decides with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

BATCH = 200  # events a pass, at most


@dataclass(frozen=True, slots=True)
class FannedOut:
    """What one committed pass did.

    Attributes:
        rows: events taken.
        jobs: jobs enqueued for them.
        oldest_age: seconds since the oldest of them occurred; 0 when there was none.
        announcements: their ids, at most 100 a piece, ready for a notice.
        retries_due: events set aside wait for their next try, and its time has come.
        full: it took as many as a pass may take, so that more may wait.
    """

    rows: int
    jobs: int
    oldest_age: float
    announcements: tuple[str, ...]
    retries_due: bool
    full: bool

    def __add__(self, other: FannedOut) -> FannedOut:
        """Both as one: what a batch did that was taken row by row."""
        return FannedOut(
            rows=self.rows + other.rows,
            jobs=self.jobs + other.jobs,
            oldest_age=max(self.oldest_age, other.oldest_age),
            announcements=(*self.announcements, *other.announcements),
            retries_due=self.retries_due or other.retries_due,
            full=self.full or other.full,
        )


NOTHING = FannedOut(0, 0, 0.0, (), retries_due=False, full=False)


class Outbox(Protocol):
    """Pending events, and events set aside. Each method is one transaction.

    All raise DatabaseUnavailable (try again later) and DatabaseRefused; those that fan out raise
    ValuesRefused when a row is at fault, and then nothing has happened.
    """

    def next_pass(self) -> FannedOut:
        """Fan out the next events, at most BATCH, in order of seq."""
        ...

    def pending(self) -> list[int]:
        """Seqs of the rows that `next_pass` would take, to be tried one by one."""
        ...

    def fan_out_row(self, seq: int) -> FannedOut:
        """Fan out one pending event; nothing if another relay was faster."""
        ...

    def set_aside(self, seq: int, error: str, delay: float) -> None:
        """Take an event that failed out of the line; its next try is `delay` seconds away."""
        ...

    def due(self, most: int) -> list[tuple[str, int]]:
        """Events set aside whose next try has come: (event id, failures so far)."""
        ...

    def fan_out_again(self, event_id: str) -> FannedOut:
        """Fan out an event that was set aside; nothing if another relay was faster."""
        ...

    def failed_again(self, event_id: str, failures: int, error: str, delay: float) -> bool:
        """Count one more failure after `failures`; return whether that poisoned the event."""
        ...

    def announce(self, announcements: tuple[str, ...]) -> None:
        """Tell those who wait for these events' fan-out: a hint."""
        ...
