"""Jobs to claim, and who else claims them."""

from __future__ import annotations

import psycopg

from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection

KIND = "corpus.index"


def other(conn: Connection) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(conn.info.dsn, password=conn.info.password)


def ids(claims: list) -> list[int]:
    return [c.job_id for c in claims]


def add(conn: Connection, n: int = 1, **opts) -> list[int]:
    jobs = PostgresJobs(conn)
    return [int(jobs.enqueue(KIND, {"n": i}, EnqueueOpts(**opts))) for i in range(n)]
