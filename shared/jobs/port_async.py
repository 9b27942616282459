"""PORT of the job engine for asyncio: what shared.jobs.port promises, as coroutines.

Method for method the same (a test compares them), so each says only which one it is. The adapters
are in shared.postgres; the memory adapter never waits, and needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, Self

from shared.jobs.inspect import Explanation, Job, JobFilter, Overview, PeriodicStatus, Wait
from shared.jobs.options import EnqueueOpts
from shared.jobs.port import DEFAULTS, EVERY_JOB, untold


class AsyncJobs(Protocol):
    """Jobs, for asyncio."""

    def with_tx(self, conn: Any) -> Self:
        """As Jobs.with_tx, with an asynchronous connection."""
        ...

    async def enqueue(
        self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS
    ) -> str:
        """As Jobs.enqueue."""
        ...

    async def enqueue_many(
        self,
        kind: str,
        args_list: Sequence[Mapping[str, Any]],
        opts: EnqueueOpts = DEFAULTS,
    ) -> list[str]:
        """As Jobs.enqueue_many."""
        ...


class AsyncInspector(Protocol):
    """Inspector, for asyncio."""

    async def overview(self, kind: str | None = None) -> Sequence[Overview]:
        """As Inspector.overview."""
        ...

    async def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """As Inspector.list."""
        ...

    async def get(self, job_id: str) -> Job:
        """As Inspector.get."""
        ...

    async def explain(self, job_id: str) -> Explanation:
        """As Inspector.explain."""
        ...

    async def retry(self, job_id: str) -> str:
        """As Inspector.retry."""
        ...

    async def cancel(self, job_id: str) -> str:
        """As Inspector.cancel."""
        ...

    async def retry_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """As Inspector.retry_many; `told` is called in another thread."""
        ...

    async def cancel_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """As Inspector.cancel_many; `told` is called in another thread."""
        ...

    async def pause(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """As Inspector.pause."""
        ...

    async def resume(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """As Inspector.resume."""
        ...

    async def periodic(self) -> Sequence[PeriodicStatus]:
        """As Inspector.periodic."""
        ...

    async def run_periodic(self, name: str) -> str:
        """As Inspector.run_periodic."""
        ...


class AsyncWaits(Protocol):
    """Waits, for asyncio."""

    async def wait(self, job_id: str, max_seconds: float) -> Wait:
        """As Waits.wait."""
        ...

    async def await_fanout(
        self, event_id: str, subscription: str, max_seconds: float
    ) -> str | None:
        """As Waits.await_fanout."""
        ...


class AsyncRuntime(AsyncJobs, AsyncInspector, AsyncWaits, Protocol):
    """Runtime, for asyncio."""

    async def start(self) -> None:
        """As Runtime.start."""
        ...

    async def stop(self) -> None:
        """As Runtime.stop."""
        ...
