"""ADAPTER: retention: what has ended long ago goes, in batches, off the claim path.

Called by handlers on the maintenance queue. Each batch is a transaction of its own of at most
BATCH rows, finds them by an index, and passes over rows that somebody holds; so claims never wait
for it, and what was done stays done when it is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.processes.registry import LEASE
from shared.postgres.queues.promotions import BATCH as PROMOTED
from shared.postgres.queues.promotions import promote
from shared.postgres.queues.rescues import MARGIN

BATCH = 5000
_NO_ID = "00000000-0000-0000-0000-000000000000"
_NO_MOMENT = "-infinity"


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many rows went; `whole` False = it was stopped before everything was looked at."""

    rows: int
    whole: bool


def prune_jobs(
    conn: Connection, completed: float, ended: float, enough: Callable[[], bool]
) -> Pruned:
    """Remove ended jobs with their log and their uniqueness.

    Args:
        conn: in autocommit mode.
        completed: seconds that completed jobs are kept.
        ended: seconds that discarded and cancelled jobs are kept.
        enough: asked between batches: stop here.
    """
    with translated():
        conn.execute(statement("retention/keep_successes"))
    rows, after, more = 0, 0, True
    while more and not enough():
        params = {"after": after, "size": BATCH, "completed": completed, "ended": ended}
        upto, pruned, more = _row(conn, statement("retention/prune_jobs"), params)
        rows, after = rows + pruned, upto or after
    return Pruned(rows, not more)


def prune_events(conn: Connection, age: float, enough: Callable[[], bool]) -> Pruned:
    """Remove events that were fanned out more than `age` seconds ago, with their fan-out."""
    rows, more = 0, True
    after: tuple[object, object] = (_NO_MOMENT, _NO_ID)
    while more and not enough():
        params = {"after_at": after[0], "after_id": after[1], "size": BATCH, "age": age}
        upto_at, upto_id, pruned, more = _row(conn, statement("retention/prune_events"), params)
        rows, after = rows + pruned, (upto_at, upto_id)
    return Pruned(rows, not more)


def prune_records(conn: Connection, age: float, enough: Callable[[], bool]) -> dict[str, int]:
    """Remove rows of processes, drains, ticks, replays and starts of long ago, and unused keys.

    Args:
        conn: in autocommit mode.
        age: seconds.
        enough: asked between batches: stop here.

    Returns:
        How many, by table.
    """
    params = {"age": age, "size": BATCH}
    return {
        "processes": _all(conn, statement("retention/prune_processes"), params, enough),
        "drains": _all(conn, statement("retention/prune_drains"), params, enough),
        "ticks": _all(conn, statement("retention/prune_ticks"), params, enough),
        "keys": _prune_keys(conn, enough),
        "replays": _all(conn, statement("retention/prune_replays"), params, enough),
        "starts": _all(conn, statement("retention/prune_starts"), params, enough),
    }


def _prune_keys(conn: Connection, enough: Callable[[], bool]) -> int:
    rows = 0
    while not enough():
        [gone] = _row(conn, statement("retention/prune_keys"), {"size": BATCH})
        rows += gone
        if gone < BATCH:
            break
    return rows


def discard_unknown(
    conn: Connection,
    known: Sequence[str],
    queues: Sequence[str],
    horizon: float,
    enough: Callable[[], bool],
) -> int:
    """Discard jobs that have waited for `horizon` seconds and whose kind nobody knows.

    Args:
        conn: in autocommit mode.
        known: kinds of the application; those of every living process are read.
        queues: whose due jobs are put in line first: a queue may have no process any more.
        horizon: seconds.
        enough: asked between batches: stop here.

    Returns:
        How many.
    """
    for queue in queues:
        while not enough() and promote(conn, queue)[0] == PROMOTED:
            pass  # each call is a batch of its own
    params = {
        "known": list(known),
        "horizon": horizon,
        "lease": LEASE + MARGIN,
        "size": BATCH,
    }
    rows = found = 0
    while not enough():
        found, *_ = _row(conn, statement("retention/discard_unknown"), params)
        rows += found
        if found < BATCH:
            break
    return rows


def _row(conn: Connection, text: LiteralString, params: Mapping[str, Any]) -> Any:
    with batch(conn):
        return conn.execute(text, params).fetchone()


@contextmanager
def batch(conn: Connection) -> Iterator[None]:
    """A transaction whose statements look rows up, however large a table has become."""
    with translated(), conn.transaction():
        conn.execute(statement("retention/by_look_ups"))
        yield


def _all(
    conn: Connection,
    text: LiteralString,
    params: Mapping[str, Any],
    enough: Callable[[], bool],
) -> int:
    rows = 0
    while not enough():
        with batch(conn):
            gone = conn.execute(text, params).rowcount
        rows += gone
        if gone < params["size"]:
            break
    return rows
