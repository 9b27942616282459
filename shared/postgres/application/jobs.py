"""ADAPTER of the port Jobs: enqueueing through a psycopg connection, in its transaction.

The connection may be an application's own: whatever it sets (row factory, client-side cursors,
autocommit) is respected or overridden here, and left as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import psycopg
from psycopg.rows import tuple_row

from shared.jobs.port import DEFAULTS, EnqueueOpts
from shared.postgres.application import enqueueing
from shared.postgres.driver.failures import translated


class PostgresJobs:
    """Enqueues through one connection; the caller owns its transaction."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def with_tx(self, conn: psycopg.Connection[Any]) -> Self:
        """Return one that writes through `conn`; this one is left as it is."""
        return type(self)(conn)

    def enqueue(self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = DEFAULTS) -> str:
        """Add a job; see shared.jobs.port.Jobs.enqueue."""
        text, params = enqueueing.one(kind, args, opts)
        with translated(), self._conn.cursor(row_factory=tuple_row) as cursor:
            row: Any = cursor.execute(text, params).fetchone()
            return str(row[0])

    def enqueue_many(
        self, kind: str, args_list: Sequence[Mapping[str, Any]], opts: EnqueueOpts = DEFAULTS
    ) -> list[str]:
        """Add many jobs, all or none; see shared.jobs.port.Jobs.enqueue_many."""
        params = enqueueing.options(kind, opts)
        lines = enqueueing.rows(kind, args_list)
        with translated(), self._together(), self._conn.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(enqueueing.texts().open_staging)
            with cursor.copy(enqueueing.texts().stage) as copy:
                for chunk in enqueueing.chunks(lines):
                    copy.write(chunk)
            return enqueueing.ids(
                cursor.execute(enqueueing.texts().enqueue_staged, params).fetchone()
            )

    def _together(self) -> AbstractContextManager[Any]:
        """One transaction: the caller's, or one of its own where every statement would commit."""
        return self._conn.transaction() if self._conn.autocommit else nullcontext()
