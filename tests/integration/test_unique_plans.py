"""The cost of a unique job, and of expiry, does not grow with what is kept, whatever plan was made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from shared.jobs.options import EnqueueOpts, Unique
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.queues.promotions import expire, promote

KIND = "corpus.index"
WAITING = ("pending", "running", "retryable")
TABLES = ("unique_key", "expiry", "job", "ready", "scheduled", "parked", "running", "attempt")


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    """An application's session: whatever plans the server likes."""
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


@pytest.fixture
def hot(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


def read_whole(conn: psycopg.Connection[Any]) -> dict[str, int]:
    """How often each table was read from end to end, by anybody."""
    conn.execute("select pg_stat_clear_snapshot(), pg_stat_force_next_flush()")
    conn.execute("select pg_stat_clear_snapshot()")
    return dict(
        conn.execute(
            "select relname, seq_scan from pg_stat_user_tables"
            " where schemaname = 'weirkeeper' and relname = any (%s)",
            (list(TABLES),),
        ).fetchall()
    )


def flush(*sessions: psycopg.Connection[Any]) -> None:
    """Have what sessions counted seen by others."""
    for session in sessions:
        session.execute("select pg_stat_force_next_flush()")


def fill(conn: psycopg.Connection[Any], first: int, count: int) -> None:
    rows = [{"n": n} for n in range(first, first + count)]
    PostgresJobs(conn).enqueue_many(KIND, rows, EnqueueOpts(unique=Unique()))


def one_by_one(conn: psycopg.Connection[Any], first: int) -> None:
    """New ones, repeated ones, and ones that a completed job lets in."""
    jobs = PostgresJobs(conn)
    for n in range(first, first + 8):
        jobs.enqueue(KIND, {"n": n}, EnqueueOpts(unique=Unique(states=WAITING)))
        jobs.enqueue(KIND, {"n": n % 4}, EnqueueOpts(unique=Unique(wait=n % 2 == 0)))


def test_the_plan_made_while_few_were_kept_is_right_for_many(conn, database_url):
    one_by_one(conn, 0)
    with psycopg.connect(database_url, autocommit=True) as other:
        fill(other, 100, 20_000)
        before = read_whole(other)
        one_by_one(conn, 20_200)
        conn.execute("select weirkeeper.cancel_jobs('{1,2,3}')")
        conn.execute("select weirkeeper.hold_unique('{1,2,3}')")
        flush(conn)
        after = read_whole(other)
    assert after["unique_key"] == before["unique_key"]
    assert after["job"] == before["job"]
    assert after["attempt"] == before["attempt"]


def test_a_timer_never_reads_whole_tables(conn, hot):
    for _ in range(8):
        promote(hot, "index")
        expire(hot, "index")
    fill(conn, 0, 5_000)
    conn.execute(
        "insert into weirkeeper.expiry (queue, expires_at, job_id)"
        " select 'index', now() + (id - 50) * interval '1 hour', id from weirkeeper.job"
    )
    flush(conn)
    before = read_whole(conn)
    promote(hot, "index")
    flush(hot)
    assert read_whole(conn) == before
    assert conn.execute("select count(*) from weirkeeper.attempt").fetchone()[0] >= 49
