"""PORT of the job engine: everything that upper layers see of it. Strings and JSON only.

An application calls `Jobs` inside its own transaction; operations call `Inspector`; a caller that
can wait calls `Waits`. The adapters are in shared.postgres.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self


@dataclass(frozen=True, slots=True)
class EnqueueOpts:
    """What may be said of one job beside kind and args.

    Attributes:
        run_at: not before this moment (aware datetime); None = at once.
        priority: 1 (first) to 4; None = 2.
        awaited: somebody waits: flush its outcome at once; None = as the kind says.
        owner_id: whose job it is, at most 200 characters.
        max_attempts: None = the kind's.
        timeout: seconds; None = the kind's.
        trace: W3C traceparent, handed to the handler.
    """

    run_at: datetime | None = None
    priority: int | None = None
    awaited: bool | None = None
    owner_id: str | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One finished attempt, as the log keeps it. Times are ISO 8601 text in UTC."""

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
class Job:
    """A job as it stands now. `id` is a decimal string of a 64-bit number."""

    id: str
    kind: str
    queue: str
    state: str
    attempt: int
    max_attempts: int
    priority: int
    created_at: str
    scheduled_at: str | None = None
    args: Mapping[str, Any] | None = None
    result: Any = None
    attempts: Sequence[Attempt] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Wait:
    """Answer of a wait. `finished` False = the bound passed first, or no slot was free."""

    state: str
    finished: bool
    result: Any = None


class Jobs(Protocol):
    """Enqueue jobs, in the caller's transaction."""

    def with_tx(self, conn: Any) -> Self:
        """Return a Jobs that writes through `conn`; this one is left as it is."""
        ...

    def enqueue(self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = EnqueueOpts()) -> str:
        """Add a job; it exists iff the transaction commits.

        Returns:
            The job's id.

        Raises:
            UnknownKind: no declaration names the kind.
            InvalidArguments: args that cannot be stored.
        """
        ...


class Inspector(Protocol):
    """Look at jobs."""

    def list(
        self,
        *,
        kind: str | None = None,
        state: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> list[Job]:
        """Newest jobs first, without their args; `before` an id, for the next page."""
        ...

    def get(self, job_id: str) -> Job:
        """One job with args and every attempt.

        Raises:
            NotFound: no such job.
        """
        ...


class Waits(Protocol):
    """Wait briefly for what happens elsewhere."""

    def wait(self, job_id: str, max_seconds: float) -> Wait:
        """Wait until the job is final, at most `max_seconds`; register first, then read."""
        ...

    def await_fanout(self, event_id: str, subscription: str, max_seconds: float) -> str | None:
        """Wait until the event was fanned out; return that subscriber's job id, or None."""
        ...
