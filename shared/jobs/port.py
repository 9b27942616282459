"""PORT of the job engine: everything that upper layers see of it. Strings and JSON only.

An application calls `Jobs` inside its own transaction; operations call `Inspector`; a caller that
can wait calls `Waits`; `Runtime` is all of them; the same for asyncio is in port_async. The
adapters are in shared.postgres and shared.memory, and pass one contract suite (tests/conformance).
The data is in options (what goes in) and inspect (what comes out).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

from shared.jobs.inspect import (
    Attempt,
    Explanation,
    Job,
    JobFilter,
    Overview,
    PeriodicStatus,
    Wait,
)
from shared.jobs.options import EnqueueOpts, Unique
from shared.jobs.periodic import Periodic

DEFAULTS = EnqueueOpts()
EVERY_JOB = JobFilter()


def untold(number: int) -> None:
    """Nobody is told how far it is."""


__all__ = [
    "DEFAULTS",
    "EVERY_JOB",
    "Attempt",
    "EnqueueOpts",
    "Explanation",
    "Inspector",
    "Job",
    "JobFilter",
    "Jobs",
    "Overview",
    "Periodic",
    "PeriodicStatus",
    "Runtime",
    "Unique",
    "Wait",
    "Waits",
]


class Jobs(Protocol):
    """Enqueue jobs, in the caller's transaction."""

    def with_tx(self, conn: Any) -> Self:
        """Return a Jobs that writes through `conn`; this one is left as it is."""
        ...

    def enqueue(self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS) -> str:
        """Add a job; it exists iff the transaction commits.

        Returns:
            The job's id; of the one that is there already, when it is to be unique.

        Raises:
            UnknownKind: no declaration names the kind.
            InvalidArguments: args or options that cannot be stored.
        """
        ...

    def enqueue_many(
        self,
        kind: str,
        args_list: Sequence[Mapping[str, Any]],
        opts: EnqueueOpts = DEFAULTS,
    ) -> list[str]:
        """Add many jobs of one kind with the same options, all or none; 10,000 are one call.

        Returns:
            Their ids, in the order of `args_list`.

        Raises:
            UnknownKind, InvalidArguments: as enqueue; nothing was added.
        """
        ...


class Inspector(Protocol):
    """Look at jobs, and step in by hand."""

    def overview(self, kind: str | None = None) -> Sequence[Overview]:
        """How every declared kind stands (or this one), by name."""
        ...

    def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """Newest jobs first, without their args.

        Args:
            wanted: which.
            limit: length of the page.
            before: an id: only older jobs (the next page).

        Raises:
            InvalidArguments: a state that is none, args that the kind does not declare, no id.
        """
        ...

    def get(self, job_id: str) -> Job:
        """One job with args and every attempt.

        Raises:
            NotFound: no such job.
        """
        ...

    def explain(self, job_id: str) -> Explanation:
        """Why the job stands where it stands.

        Raises:
            NotFound: no such job.
        """
        ...

    def retry(self, job_id: str) -> str:
        """Run a discarded or cancelled job once more; a waiting one now, not at its time.

        Returns:
            The state that the job then has. A running job is left as it is.

        Raises:
            NotFound: no such job.
            Conflict: it is completed, or another job holds its uniqueness (`job_id` names it).
        """
        ...

    def cancel(self, job_id: str) -> str:
        """End a waiting job; ask a running one to stop, at once.

        Returns:
            The state that the job then has: cancelled; running while it is being stopped; or the
            final state that it had and keeps.

        Raises:
            NotFound: no such job.
        """
        ...

    def retry_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Retry discarded and cancelled jobs, in batches; those in conflict are passed over.

        Args:
            wanted: which.
            told: called with the number so far, after each batch that moved any.

        Returns:
            How many.
        """
        ...

    def cancel_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Cancel waiting and running jobs, in batches.

        Args:
            wanted: which.
            told: called with the number so far, after each batch that moved any.

        Returns:
            How many.
        """
        ...

    def pause(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start no more jobs of a queue or of a kind; running ones go on. Exactly one is given.

        Raises:
            NotFound: no such queue or kind.
            InvalidArguments: both given, or none.
        """
        ...

    def resume(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start jobs again, as `pause` was called. What is not paused stays as it is."""
        ...

    def periodic(self) -> Sequence[PeriodicStatus]:
        """How the periodic jobs go, by name."""
        ...

    def run_periodic(self, name: str) -> str:
        """Enqueue an extra run now; the schedule stays as it is.

        Returns:
            The job's id.

        Raises:
            NotFound: no such periodic job.
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


class Runtime(Jobs, Inspector, Protocol):
    """The engine in one hand: enqueue, look, step in, wait."""

    def wait(self, job_id: str, max_seconds: float) -> Wait:
        """As Waits.wait."""
        ...

    def await_fanout(self, event_id: str, subscription: str, max_seconds: float) -> str | None:
        """As Waits.await_fanout."""
        ...

    def start(self) -> None:
        """Take up the application's declarations; idempotent."""
        ...

    def stop(self) -> None:
        """Let go of connections and threads, and wait for them; idempotent, also before start."""
        ...
