"""Unique jobs of the reference site's index, and what befalls them."""

from __future__ import annotations

from typing import Any

from shared.jobs.options import EnqueueOpts, Unique
from shared.jobs.work import Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import finish

KIND = "corpus.index"
UNIQUE = EnqueueOpts(unique=Unique())
EPOCH = 1


def add(conn: Any, args: dict[str, Any] | None = None, kind: str = KIND, **unique: Any) -> str:
    """Enqueue a unique job; its id."""
    opts = EnqueueOpts(unique=Unique(**unique))
    return PostgresJobs(conn).enqueue(kind, args or {}, opts)


def claim(conn: Connection) -> Any:
    """Claim one job that waits."""
    [claimed] = Claims(conn, "index", EPOCH).claim([KIND], 1)
    return claimed


def run(conn: Connection, outcome: str, state: str, delay: float | None = None) -> None:
    """Claim one job that waits, and end its run so."""
    claimed = claim(conn)
    ended = Finish(claimed.job_id, claimed.token, outcome, state, delay)
    assert finish(conn, EPOCH, [ended]) == 1


def cancel(conn: Any, job: str) -> None:
    """Cancel it by hand."""
    conn.execute("select weirkeeper.cancel_jobs(array[%s::bigint])", (job,))


def count(conn: Any, table: str = "job") -> int:
    """How many rows a table has."""
    return conn.execute(f"select count(*) from weirkeeper.{table}").fetchone()[0]
