"""ADAPTER of the port Jobs: enqueueing through a psycopg connection, in its transaction.

The SQL function `weirkeeper.enqueue` is the one implementation; Python adds only the checks that
must happen before the database sees the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import psycopg

from shared.jobs.options import EnqueueOpts, check_options, checked_args
from shared.postgres.failures import translated
from shared.postgres.statements import statement

_DEFAULT = EnqueueOpts()


class PostgresJobs:
    """Enqueues through one connection; the caller owns its transaction."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def with_tx(self, conn: psycopg.Connection[Any]) -> Self:
        """Return one that writes through `conn`; this one is left as it is."""
        return type(self)(conn)

    def enqueue(self, kind: str, args: Mapping[str, Any], opts: EnqueueOpts = _DEFAULT) -> str:
        """Add a job; see shared.jobs.port.Jobs.enqueue."""
        params = parameters(kind, args, opts)
        with translated(), self._conn.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            row = cursor.execute(statement("jobs/enqueue"), params).fetchone()
            return str(row[0]) if row else ""


def parameters(kind: str, args: Mapping[str, Any], opts: EnqueueOpts) -> dict[str, Any]:
    """Check what Python can see, before it could abort the caller's transaction; name parameters.

    Raises:
        InvalidArguments: args that cannot be stored, or an option that cannot be.
    """
    text = checked_args(kind, args)
    check_options(kind, opts)
    return {
        "kind": kind,
        "args": text,
        "run_at": opts.run_at,
        "priority": opts.priority,
        "owner_id": opts.owner_id,
        "awaited": opts.awaited,
        "max_attempts": opts.max_attempts,
        "timeout_ms": _milliseconds(opts.timeout),
        "trace": opts.trace,
    }


def _milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else max(1, round(seconds * 1000))
