"""ADAPTER: jobs whose time has come move to `ready`; those whose time is over are discarded.

Keys whose moment has come are opened on the way.

A timer of every queue process calls it, so nothing hangs on one of them.
"""

from __future__ import annotations

from typing import Any

from shared.postgres import keys
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement

BATCH = 1000


def promote(conn: Connection, queue: str, limit: int = BATCH) -> tuple[int, float | None]:
    """Promote at most `limit` due jobs of a queue; discard those that have expired.

    Returns:
        (how many were promoted, seconds until the next is due or expires or a concurrency key
        opens, None when none will).
    """
    with translated():
        row: Any = conn.execute(
            statement("promotions/promote"), {"queue": queue, "limit": limit}
        ).fetchone()
    promoted, due, overdue, opened = row
    if opened:
        keys.open_due(conn)
    if overdue and expire(conn, queue, limit) == limit:
        due = 0.0
    return promoted, due


def expire(conn: Connection, queue: str, limit: int = BATCH) -> int:
    """Discard at most `limit` jobs that wait, were never tried, and were to start by now.

    Returns:
        How many.
    """
    with translated():
        row: Any = conn.execute(
            statement("promotions/expire"), {"queue": queue, "limit": limit}
        ).fetchone()
    return int(row[0])
