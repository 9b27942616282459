"""ADAPTER of the port AsyncRuntime: the engine in one hand, for a process with an event loop.

Waits are on the loop (shared.postgres.application.waits_async). Everything else is short and
bounded, and runs in a thread, on the sessions of a PostgresRuntime, one call a session at a time;
with `with_tx` it runs on the caller's asynchronous connection. Must never block the loop.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import psycopg

from shared.app import App
from shared.jobs.inspect import Explanation, Job, JobFilter, Overview, PeriodicStatus, Wait
from shared.jobs.options import EnqueueOpts
from shared.jobs.port import DEFAULTS, EVERY_JOB, untold
from shared.postgres.application.jobs_async import PostgresAsyncJobs
from shared.postgres.application.runtime import PostgresRuntime
from shared.postgres.application.waits_async import PostgresAsyncWaits


class PostgresAsyncRuntime:
    """Enqueues, looks, steps in and waits, from any task of one loop.

    Args:
        url: libpq URI, direct (no pooler).
        name: of its sessions.
        app: declared by `start`; None = `weirkeeper migrate` and the queue processes do.
    """

    def __init__(self, url: str, name: str = "application", app: App | None = None) -> None:
        self._engine = PostgresRuntime(url, name, app)
        self._waits = PostgresAsyncWaits(url, name)
        self._engine.awaited = self._waits.open  # its own waits are not used
        self._bound: PostgresAsyncJobs | None = None

    async def start(self) -> None:
        """Reach the database and declare the application; see PostgresRuntime.start."""
        await asyncio.to_thread(self._engine.start)

    async def stop(self) -> None:
        """End its sessions, and wait for that; idempotent, also before start."""
        await self._waits.close()
        await asyncio.to_thread(self._engine.stop)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    # ── Jobs ────────────────────────────────────────────────────────────────────────────────────

    def with_tx(self, conn: psycopg.AsyncConnection[Any]) -> Self:
        """Return one that enqueues through `conn`; this one is left as it is."""
        bound = copy.copy(self)
        bound._bound = PostgresAsyncJobs(conn)  # noqa: SLF001  (ours)
        return bound

    async def enqueue(
        self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS
    ) -> str:
        """Add a job; it is there at once, unless `with_tx` says otherwise. See port.Jobs."""
        if self._bound is not None:
            self._expect(opts)
            return await self._bound.enqueue(kind, args, opts)
        return await asyncio.to_thread(self._engine.enqueue, kind, args, opts)

    async def enqueue_many(
        self, kind: str, args_list: Sequence[Mapping[str, Any]], opts: EnqueueOpts = DEFAULTS
    ) -> list[str]:
        """Add many jobs, all or none; see port.Jobs."""
        if self._bound is not None:
            self._expect(opts)
            return await self._bound.enqueue_many(kind, args_list, opts)
        return await asyncio.to_thread(self._engine.enqueue_many, kind, args_list, opts)

    def _expect(self, opts: EnqueueOpts) -> None:
        if isinstance(opts, EnqueueOpts) and opts.awaited:  # what is none, the write refuses
            self._waits.open()

    # ── Waits ───────────────────────────────────────────────────────────────────────────────────

    async def wait(self, job_id: str, max_seconds: float) -> Wait:
        """Wait until a job is final; see port.Waits."""
        return await self._waits.wait(job_id, max_seconds)

    async def await_fanout(
        self, event_id: str, subscription: str, max_seconds: float
    ) -> str | None:
        """Wait for an event's fan-out; see port.Waits."""
        return await self._waits.await_fanout(event_id, subscription, max_seconds)

    # ── Inspector ───────────────────────────────────────────────────────────────────────────────

    async def overview(self, kind: str | None = None) -> Sequence[Overview]:
        """How declared kinds stand; see port.Inspector, as all that follow."""
        return await asyncio.to_thread(self._engine.overview, kind)

    async def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """Newest jobs first."""
        return await asyncio.to_thread(self._engine.list, wanted, limit=limit, before=before)

    async def get(self, job_id: str) -> Job:
        """One job with args and every attempt."""
        return await asyncio.to_thread(self._engine.get, job_id)

    async def explain(self, job_id: str) -> Explanation:
        """Why the job stands where it stands."""
        return await asyncio.to_thread(self._engine.explain, job_id)

    async def retry(self, job_id: str) -> str:
        """Run a job once more."""
        return await asyncio.to_thread(self._engine.retry, job_id)

    async def cancel(self, job_id: str) -> str:
        """End a job."""
        return await asyncio.to_thread(self._engine.cancel, job_id)

    async def retry_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Retry discarded and cancelled jobs, in batches; `told` is called in another thread."""
        return await asyncio.to_thread(self._engine.retry_many, wanted, told=told)

    async def cancel_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Cancel waiting and running jobs, in batches; `told` is called in another thread."""
        return await asyncio.to_thread(self._engine.cancel_many, wanted, told=told)

    async def pause(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start no more jobs of a queue or kind."""
        await asyncio.to_thread(self._engine.pause, queue=queue, kind=kind)

    async def resume(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start them again."""
        await asyncio.to_thread(self._engine.resume, queue=queue, kind=kind)

    async def periodic(self) -> Sequence[PeriodicStatus]:
        """How periodic jobs go."""
        return await asyncio.to_thread(self._engine.periodic)

    async def run_periodic(self, name: str) -> str:
        """Start an extra run."""
        return await asyncio.to_thread(self._engine.run_periodic, name)
