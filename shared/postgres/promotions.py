"""ADAPTER: moving scheduled jobs to `ready` when their time has come.

A timer of every queue process calls it, so nothing hangs on one of them.
"""

from __future__ import annotations

from typing import cast

from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement

BATCH = 1000


def promote(conn: Connection, queue: str, limit: int = BATCH) -> tuple[int, float | None]:
    """Promote at most `limit` due jobs of a queue.

    Returns:
        (how many, seconds until the next is due or None when nothing is scheduled).
    """
    with translated():
        row = conn.execute(
            statement("promotions/promote"), {"queue": queue, "limit": limit}
        ).fetchone()
    return cast("tuple[int, float | None]", row)
