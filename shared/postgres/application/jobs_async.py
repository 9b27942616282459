"""ADAPTER of the port AsyncJobs: as shared.postgres.application.jobs, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Self

import psycopg
from psycopg.rows import tuple_row

from shared.jobs.port import DEFAULTS, EnqueueOpts
from shared.postgres.application import enqueueing
from shared.postgres.driver.failures import translated


class PostgresAsyncJobs:
    """Enqueues through one asynchronous connection; the caller owns its transaction."""

    def __init__(self, conn: psycopg.AsyncConnection[Any]) -> None:
        self._conn = conn

    def with_tx(self, conn: psycopg.AsyncConnection[Any]) -> Self:
        """Return one that writes through `conn`; this one is left as it is."""
        return type(self)(conn)

    async def enqueue(
        self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS
    ) -> str:
        """Add a job; see shared.jobs.port.Jobs.enqueue."""
        text, params = enqueueing.one(kind, args, opts)
        with translated():
            async with self._conn.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(text, params)
                row: Any = await cursor.fetchone()
        return str(row[0])

    async def enqueue_many(
        self, kind: str, args_list: Sequence[Mapping[str, Any]], opts: EnqueueOpts = DEFAULTS
    ) -> list[str]:
        """Add many jobs, all or none; see shared.jobs.port.Jobs.enqueue_many."""
        params = enqueueing.options(kind, opts)
        lines = enqueueing.rows(kind, args_list)
        with translated():
            async with self._together(), self._conn.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(enqueueing.texts().open_staging)
                async with cursor.copy(enqueueing.texts().stage) as copy:
                    for chunk in enqueueing.chunks(lines):
                        await copy.write(chunk)
                await cursor.execute(enqueueing.texts().enqueue_staged, params)
                return enqueueing.ids(await cursor.fetchone())

    def _together(self) -> AbstractAsyncContextManager[Any]:
        """One transaction: the caller's, or one of its own where every statement would commit."""
        return self._conn.transaction() if self._conn.autocommit else nullcontext()
