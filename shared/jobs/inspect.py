"""What the ports answer with: a job as it stands, its attempts, a filter, an overview. Data only.

Ids are decimal strings of 64-bit numbers; moments are ISO 8601 text in UTC, so that every face
(page, JSON, command line) shows them as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Attempt:
    """One finished attempt, as the log keeps it."""

    run: int
    attempt: int
    outcome: str
    state: str
    error: str | None
    cause: str | None
    evidence: Mapping[str, Any]
    claimed_at: str | None
    started_at: str | None
    finished_at: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a running job is, as its handler told last: `n` of `of` (None = unknown)."""

    n: float
    of: float | None = None

    def __str__(self) -> str:
        """For people: "40 of 100"."""
        return f"{self.n:g}" if self.of is None else f"{self.n:g} of {self.of:g}"


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it stands now. A list leaves `args`, `result`, `command` and `attempts` out.

    `command` is the program that runs it, with its arguments; empty = a handler does.
    """

    id: str
    kind: str
    queue: str
    state: str
    attempt: int
    max_attempts: int
    priority: int
    created_at: str
    scheduled_at: str | None = None
    owner_id: str | None = None
    tags: Sequence[str] = ()
    progress: Progress | None = None
    args: Mapping[str, Any] | None = None
    result: Any = None
    command: Sequence[str] = ()
    attempts: Sequence[Attempt] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; what is not given does not matter.

    Attributes:
        kind, queue, state, owner_id: equal to this.
        tag: among the job's tags.
        args: contained in the job's args; needs `kind`, and names only keys that the kind declares
            as searchable.
        created_after, created_before: aware ISO 8601 moments; the first counts, the second not.
    """

    kind: str | None = None
    queue: str | None = None
    state: str | None = None
    owner_id: str | None = None
    tag: str | None = None
    args: Mapping[str, Any] | None = None
    created_after: str | None = None
    created_before: str | None = None


@dataclass(frozen=True, slots=True)
class Overview:
    """How one kind stands. A kind that never ran has zeros.

    Attributes:
        kind, queue: its names.
        counts: jobs by state; all six states, as long as they are kept. An adapter may stop
            counting at 10,000.
        oldest_pending_age: seconds that the oldest job that may run now has been waiting.
        paused: its kind, or its queue, is paused.
    """

    kind: str
    queue: str
    counts: Mapping[str, int]
    oldest_pending_age: float | None
    paused: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a job stands where it stands.

    Attributes:
        sentence: for people: where it is, what it waits for, until when.
        state: of the job.
        where: ready, scheduled, parked, running or ended.
        waits_for: for programs: a child, time, retry, snooze, key, rate, cap, resume, a process
            (that knows the kind), its queue (the kind was moved there), rescue (its process is
            gone), its end; None when it ended.
        until: when that is over, if it is known.
        facts: what the sentence was made of.
    """

    sentence: str
    state: str
    where: str
    waits_for: str | None
    until: str | None
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PeriodicStatus:
    """How a periodic job goes; `starts` are its last five jobs, newest first."""

    name: str
    kind: str
    schedule: str
    next_at: str | None
    last_started_at: str | None
    last_result: str | None
    last_error: str | None
    starts: Sequence[Job] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Wait:
    """Answer of a wait. `finished` False = the bound passed first, or no slot was free.

    `progress` is what the handler of a running job told last.
    """

    state: str
    finished: bool
    result: Any = None
    progress: Progress | None = None
