"""ADAPTER: jobs of kinds that were moved to another queue go after them.

A timer of every queue process calls it. Whoever puts a job back where it ran (a retry, a rescue)
need not know where its kind lies by now: what is in the wrong line is brought to the right one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.processes.registry import LEASE

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
