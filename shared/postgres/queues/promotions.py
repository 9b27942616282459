"""ADAPTER: jobs whose time has come move to `ready`; those whose time is over are discarded.

Keys whose moment has come are opened on the way, and a process may look around with it.

A timer of every queue process calls it, so nothing hangs on one of them; it sees to queues that
nobody serves, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.jobs.work import Around
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.processes.registry import LEASE
from shared.postgres.queues import keys

BATCH = 1000


def promote(conn: Connection, queue: str, limit: int = BATCH) -> tuple[int, float | None]:
    """Promote at most `limit` due jobs of a queue; discard those that have expired.

    Returns:
        (how many were promoted, seconds until the next is due or expires or a concurrency key
        opens, None when none will).
    """
    promoted, due, _ = promote_and_look(conn, queue, None, limit)
    return promoted, due


def promote_and_look(
    conn: Connection, queue: str, epoch: int | None, limit: int = BATCH
) -> tuple[int, float | None, Around | None]:
    """As `promote`; also what this epoch's timers would find, None = no epoch asks."""
    params = {"queue": queue, "limit": limit, "epoch": epoch}
    with translated():
        row: Any = conn.execute(statement("promotions/promote"), params).fetchone()
    promoted, due, overdue, opened, ours, others, parked, ticks, _ = row
    if opened:
        keys.open_due(conn)
    if overdue and expire(conn, queue, limit) == limit:
        due = 0.0
    around = None if epoch is None else Around(ours, others, bool(parked), ticks)
    return promoted, due, around


def promote_unattended(conn: Connection, limit: int = BATCH) -> int:
    """Promote and discard what is due in queues that no living process serves.

    What is promoted stands in the line of the queue where its kind lies.

    Args:
        conn: in autocommit mode.
        limit: at most so many of a queue.

    Returns:
        The most that were promoted of one.
    """
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("promotions/unattended"), {"lease": LEASE}
        ).fetchall()
    return max((promote(conn, name, limit)[0] for (name,) in rows), default=0)


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
