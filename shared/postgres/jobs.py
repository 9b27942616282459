"""ADAPTER of the port Jobs: enqueueing through a psycopg connection, in its transaction.

The SQL function `weirkeeper.enqueue` is the one implementation; Python adds only the checks that
must happen before the database sees the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import psycopg

from shared.errors import InvalidArguments
from shared.jobs.port import EnqueueOpts
from shared.jsonvalue import check_text, encode_object
from shared.postgres.failures import translated
from shared.postgres.statements import statement

_DEFAULT = EnqueueOpts()
MAX_TEXT = 200  # characters of owner_id and trace
MAX_INTEGER = 2**31 - 1
DAY = 86_400


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
    check_text(kind, "kind", MAX_TEXT)
    check_text(opts.owner_id, f"owner_id of kind {kind}", MAX_TEXT)
    check_text(opts.trace, f"trace of kind {kind}", MAX_TEXT)
    if opts.run_at is not None and getattr(opts.run_at, "tzinfo", None) is None:
        raise InvalidArguments(
            f"run_at: expected a datetime with a time zone; got {opts.run_at!r}; add tzinfo=UTC"
        )
    given = dict(args) if isinstance(args, Mapping) else args
    return {
        "kind": kind,
        "args": encode_object(given, f"args of kind {kind}"),
        "run_at": opts.run_at,
        "priority": _within(opts.priority, "priority", 1, 4),
        "owner_id": opts.owner_id,
        "awaited": opts.awaited,
        "max_attempts": _within(opts.max_attempts, "max_attempts", 1, MAX_INTEGER),
        "timeout_ms": _milliseconds(opts.timeout),
        "trace": opts.trace,
    }


def _within(value: int | None, what: str, low: int, high: int) -> int | None:
    if value is None or (isinstance(value, int) and low <= value <= high):
        return value
    raise InvalidArguments(
        f"{what}: expected a whole number from {low} to {high}; got {value!r}; "
        "leave it out for the kind's"
    )


def _milliseconds(seconds: float | None) -> int | None:
    if seconds is None:
        return None
    if not 0 < seconds <= DAY:
        raise InvalidArguments(
            f"timeout: expected more than 0 s and at most {DAY} s; got {seconds!r}; "
            "leave it out for the kind's"
        )
    return max(1, round(seconds * 1000))
