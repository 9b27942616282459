"""What one child holds: jobs in order, each ended, running, or not begun. Pure.

Made by `slot` when jobs are handed over. Jobs end from the front, by what the child tells or by how
far its word has moved; what it has not begun can be cut off from the back. Numbers count what was
handed to a child, with one left out between two chunks, so that the word of an earlier chunk is
never taken for one of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from workers.pool.progress import behind


class Job(Protocol):
    """What the pool must know of a job: its id names it, `line` is handed to the child."""

    @property
    def job_id(self) -> int:
        """Its id."""
        ...

    @property
    def kind(self) -> str:
        """Its kind, by which it is limited, or run by a foreign program."""
        ...

    @property
    def line(self) -> bytes:
        """The job as a JSON object."""
        ...

    @property
    def timeout(self) -> float:
        """Seconds that it may run."""
        ...


@dataclass(frozen=True, slots=True)
class End:
    """How a job ended that has something to tell.

    Attributes:
        outcome: completed, failed, snoozed, discarded (the child's word), timeout, interrupted,
            cancelled, crashed, or lost (the whole pool died with its fork server).
        started_at: seconds since 1970; None = it never began.
        result: JSON text.
        delay: seconds of a snooze, or in place of the kind's backoff.
        seconds: that it ran.
        death: its child died of itself, or of the job; nobody here had killed it.
        outside: seconds that it was in a request to a stranger; None = it made none.
    """

    key: int
    outcome: str
    started_at: float | None
    seconds: float
    result: str | None = None
    error: str | None = None
    cause: str | None = None
    delay: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    death: bool = False
    outside: float | None = None


class Run(NamedTuple):
    """Jobs that completed one after the other, with nothing to tell.

    Attributes:
        started_at: when the first began, seconds since 1970.
        seconds: that all took together.
    """

    jobs: Sequence[Job]
    started_at: float
    seconds: float


class Chunk:
    """Jobs that were handed to a child in one message.

    Attributes:
        first: number of the first.
        given: when they were handed over.
        since: when the first that has not ended began, as far as is known.
    """

    def __init__(self, jobs: Sequence[Job], first: int, now: float) -> None:
        self.first = first
        self.given = self.since = now
        self._jobs = list(jobs)
        self._last = len(jobs) - 1
        self._ended = 0

    def __len__(self) -> int:
        """Jobs that are the child's and have not ended."""
        return len(self._jobs) - self._ended

    def holds(self, job_id: int) -> bool:
        """Whether a job is the child's and has not ended."""
        return any(job.job_id == job_id for job in self._jobs[self._ended :])

    def job(self, index: int) -> Job | None:
        """A job by its place in the message; None = ended, cut off, or never there."""
        return self._jobs[index] if self._ended <= index < len(self._jobs) else None

    def is_last(self, index: int) -> bool:
        """Whether the child has nothing more to say after this one."""
        return index == self._last

    def place(self, number: int) -> int | None:
        """Where the child's word stands: a job's place, at most one behind them; None = before."""
        index = behind(number, self.first)
        return index if index <= len(self._jobs) else None

    def end(self, index: int, moment: float) -> list[Job]:
        """All jobs before this place have ended by then; those of them that had not yet."""
        ended = self._jobs[self._ended : index]
        if ended:
            self._ended += len(ended)
            self.since = moment
        return ended

    def cut(self, jobs: int) -> list[Job]:
        """Take so many off the back: the child will not begin them."""
        keep = max(self._ended, len(self._jobs) - jobs)
        back = self._jobs[keep:]
        del self._jobs[keep:]
        return back
