"""ADAPTER: what is over among webhooks: expired secrets, lost deliveries, old logs. In batches.

Called by a handler on the maintenance queue, like shared.postgres.queues.retention, off the claim
path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, LiteralString

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.statements import statement
from shared.postgres.queues.retention import batch

BATCH = 1000


def tidy_webhooks(conn: Connection, age: float, enough: Callable[[], bool]) -> dict[str, int]:
    """Remove what is over: secrets, and deliveries and replays of `age` seconds ago; end lost ones.

    Args:
        conn: in autocommit mode.
        age: seconds that the log is kept.
        enough: asked between batches: stop here.

    Returns:
        How many secrets, lost, old and replays, by these names; "whole" is 0 when it was stopped.
    """
    done = {"secrets": 0, "lost": 0, "old": 0, "replays": 0, "whole": 1}
    ways = {
        "secrets": _each(conn, statement("endpoints/purge_secrets"), age),
        "lost": end_lost(conn),
        "old": _each(conn, statement("deliveries/prune"), age),
        "replays": _each(conn, statement("webhook_replays/prune"), age),
    }
    for name, batches in ways.items():
        while True:
            if enough():
                return {**done, "whole": 0}
            found = next(batches, None)
            if found is None:
                break
            done[name] += found
    return done


def end_lost(conn: Connection, size: int = BATCH) -> Iterator[int]:
    """End deliveries whose job has ended without them: a batch of those that wait for each number.

    Args:
        conn: in autocommit mode.
        size: deliveries that a batch looks at.

    Yields:
        How many of a batch were lost.
    """
    looked, endpoint, job = size, 0, 0
    while looked == size:
        params = {"after_endpoint": endpoint, "after_job": job, "limit": size}
        with batch(conn):
            row: Any = conn.execute(statement("deliveries/end_lost"), params).fetchone()
        looked, endpoint, job, lost, _ = row
        yield lost


def _each(conn: Connection, text: LiteralString, age: float) -> Iterator[int]:
    found = BATCH
    while found == BATCH:
        with batch(conn):
            row: Any = conn.execute(text, {"age": age, "limit": BATCH}).fetchone()
        found = row[0]
        yield found
