"""ADAPTER of the port Runtime: the engine in one hand, for an application's process.

Before it: the application. After it: jobs, inspector and waits, each with sessions of its own that
all threads share, opened when first used; that which waits read through is begun by the enqueue of
an awaited job, because whoever enqueues that will wait. Must never run a job: queue processes do.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg

from shared.app import App
from shared.jobs.inspect import Explanation, Job, JobFilter, Overview, PeriodicStatus, Wait
from shared.jobs.options import EnqueueOpts
from shared.jobs.port import DEFAULTS, EVERY_JOB, untold
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.kept import KeptSession
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.catalog import declare

T = TypeVar("T")


class PostgresRuntime:
    """Enqueues, looks, steps in and waits, from any thread.

    Attributes:
        awaited: called before a job is enqueued for whose end somebody will wait.

    Args:
        url: libpq URI, direct (no pooler).
        name: of its sessions.
        app: declared by `start`; None = `weirkeeper migrate` and the queue processes do.
    """

    def __init__(self, url: str, name: str = "application", app: App | None = None) -> None:
        self._app = app
        self._writes = KeptSession(url, name)
        self._looks = KeptSession(url, f"{name} looks")
        self._batches = KeptSession(url, f"{name} batches")  # of many jobs: nobody waits for them
        self._waits = PostgresWaits(url, name)
        self.awaited: Callable[[], None] = self._waits.open
        self._bound: psycopg.Connection[Any] | None = None

    def start(self) -> None:
        """Reach the database and declare the application; idempotent.

        Raises:
            DatabaseUnavailable: not reachable now.
        """
        with self._writes.use() as conn:
            if self._app is not None:
                declare(conn, self._app.check())

    def stop(self) -> None:
        """End its sessions, and wait for that; idempotent, also before start."""
        self._waits.close()
        self._looks.close()
        self._batches.close()
        self._writes.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # ── Jobs ────────────────────────────────────────────────────────────────────────────────────

    def with_tx(self, conn: psycopg.Connection[Any]) -> Self:
        """Return one that enqueues through `conn`; this one is left as it is."""
        bound = copy.copy(self)
        bound._bound = conn  # noqa: SLF001  (ours)
        return bound

    def enqueue(self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS) -> str:
        """Add a job; it is there at once, unless `with_tx` says otherwise. See port.Jobs."""
        return self._write(opts, lambda jobs: jobs.enqueue(kind, args, opts))

    def enqueue_many(
        self, kind: str, args_list: Sequence[Mapping[str, Any]], opts: EnqueueOpts = DEFAULTS
    ) -> list[str]:
        """Add many jobs, all or none; see port.Jobs."""
        return self._write(opts, lambda jobs: jobs.enqueue_many(kind, args_list, opts))

    def _write(self, opts: EnqueueOpts, write: Callable[[PostgresJobs], T]) -> T:
        if isinstance(opts, EnqueueOpts) and opts.awaited:  # what is none, the write refuses
            self.awaited()
        if self._bound is not None:
            return write(PostgresJobs(self._bound))
        with self._writes.use() as conn:
            return write(PostgresJobs(conn))

    # ── Waits ───────────────────────────────────────────────────────────────────────────────────

    def wait(self, job_id: str, max_seconds: float) -> Wait:
        """Wait until a job is final; see port.Waits."""
        return self._waits.wait(job_id, max_seconds)

    def await_fanout(self, event_id: str, subscription: str, max_seconds: float) -> str | None:
        """Wait for an event's fan-out; see port.Waits."""
        return self._waits.await_fanout(event_id, subscription, max_seconds)

    # ── Inspector ───────────────────────────────────────────────────────────────────────────────

    def overview(self, kind: str | None = None) -> Sequence[Overview]:
        """How declared kinds stand; see port.Inspector, as all that follow."""
        return self._look(lambda inspector: inspector.overview(kind))

    def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """Newest jobs first."""
        return self._look(lambda inspector: inspector.list(wanted, limit=limit, before=before))

    def get(self, job_id: str) -> Job:
        """One job with args and every attempt."""
        return self._look(lambda inspector: inspector.get(job_id))

    def explain(self, job_id: str) -> Explanation:
        """Why the job stands where it stands."""
        return self._look(lambda inspector: inspector.explain(job_id))

    def retry(self, job_id: str) -> str:
        """Run a job once more."""
        return self._look(lambda inspector: inspector.retry(job_id))

    def cancel(self, job_id: str) -> str:
        """End a job."""
        return self._look(lambda inspector: inspector.cancel(job_id))

    def retry_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Retry discarded and cancelled jobs, in batches."""
        with self._batches.use() as conn:
            return PostgresInspector(conn).retry_many(wanted, told=told)

    def cancel_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Cancel waiting and running jobs, in batches."""
        with self._batches.use() as conn:
            return PostgresInspector(conn).cancel_many(wanted, told=told)

    def pause(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start no more jobs of a queue or kind."""
        self._look(lambda inspector: inspector.pause(queue=queue, kind=kind))

    def resume(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start them again."""
        self._look(lambda inspector: inspector.resume(queue=queue, kind=kind))

    def periodic(self) -> Sequence[PeriodicStatus]:
        """How periodic jobs go."""
        return self._look(lambda inspector: inspector.periodic())

    def run_periodic(self, name: str) -> str:
        """Start an extra run."""
        return self._look(lambda inspector: inspector.run_periodic(name))

    def _look(self, look: Callable[[PostgresInspector], T]) -> T:
        with self._looks.use() as conn:
            return look(PostgresInspector(conn))
