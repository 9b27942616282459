"""ADAPTER: jobs of kinds that were moved to another queue go after them; no queue is left alone.

A timer of every queue process calls it. Whoever puts a job back where it ran (a retry, a rescue)
need not know where its kind lies by now: what is in the wrong line is brought to the right one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from shared.postgres import promotions
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.processes import LEASE
from shared.postgres.statements import statement

BATCH = 1000

log = logging.getLogger(__name__)


def bring(
    conn: Connection, queue: str, epoch: int, kinds: Sequence[str], limit: int = BATCH
) -> int:
    """Bring at most `limit` ready jobs here that lie in the line of another queue.

    Args:
        conn: in autocommit mode.
        queue: where these kinds are declared by whoever asks.
        epoch: of who asks: the youngest process that claims a kind says where it lies.
        kinds: that it knows, in this queue.
        limit: at most so many in one transaction.

    Returns:
        How many came.
    """
    params = {
        "queue": queue, "epoch": epoch, "kinds": list(kinds), "lease": LEASE, "limit": limit,
    }  # fmt: skip
    with translated():
        row: Any = conn.execute(statement("moved/bring"), params).fetchone()
    came, again, _ = row
    if again:
        log.warning("declared again in queue %s: kinds %s", queue, ", ".join(again))
    return int(came)


def attend(conn: Connection, limit: int = BATCH) -> int:
    """Promote and expire what is due in queues that no living process serves.

    What is promoted stands in the line of the queue where its kind lies.

    Args:
        conn: in autocommit mode.
        limit: at most so many of a queue.

    Returns:
        The most that were promoted of one.
    """
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("moved/unattended"), {"lease": LEASE}
        ).fetchall()
    return max((promotions.promote(conn, name, limit)[0] for (name,) in rows), default=0)
