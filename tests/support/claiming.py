"""Jobs to claim, and who else claims them."""

from __future__ import annotations

import psycopg

from shared.jobs.port import EnqueueOpts
from shared.jobs.work import Claim
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection
from shared.postgres.queues.claims import Claims

KIND = "corpus.index"
EPOCH = 1


def other(conn: Connection) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(conn.info.dsn, password=conn.info.password)


def ids(claims: list) -> list[int]:
    return [c.job_id for c in claims]


def add(conn: Connection, n: int = 1, **opts) -> list[int]:
    jobs = PostgresJobs(conn)
    return [int(jobs.enqueue(KIND, {"n": i}, EnqueueOpts(**opts))) for i in range(n)]


def claim(conn: Connection, limit: int = 10) -> list[Claim]:
    """Claim until a claim has seen everything, or found something."""
    claims = Claims(conn, "index", EPOCH)
    while not (got := claims.claim([KIND], limit)) and claims.unfinished:
        pass
    return got
