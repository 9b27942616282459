"""Many jobs at once: all or none, in order, refused in words before anything is written."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

import weirkeeper
from shared.errors import InvalidArguments, UnknownKind
from shared.jobs.options import EnqueueOpts, Unique
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.queues.claims import Claims

KIND = "corpus.index"
NASTY = [
    {"text": 'a\tb\nc\r"\\d\\n\\\\', "n": 2**70},
    {"text": "漢字 é \u2028 \x7f", "deep": [{"x": None}]},
    {"text": "\\."},
    {"text": "\\N"},
]


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url) as opened:
        yield opened


@pytest.fixture
def worker(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


def count(conn: psycopg.Connection[Any], table: str = "job") -> int:
    return conn.execute(f"select count(*) from weirkeeper.{table}").fetchone()[0]


def numbered(n: int) -> list[dict[str, Any]]:
    return [{"n": i} for i in range(n)]


def test_ten_thousand_in_one_call_in_order_and_as_they_were(conn):
    ids = weirkeeper.Jobs(conn).enqueue_many(KIND, numbered(10_000))
    stored = conn.execute(
        "select j.id::text, (j.args ->> 'n')::int from weirkeeper.job j"
        " join weirkeeper.ready r on r.job_id = j.id order by r.seq"
    ).fetchall()
    assert stored == [(job, n) for n, job in enumerate(ids)]
    assert len(set(ids)) == 10_000


def test_whatever_one_job_may_hold_many_may(conn):
    ids = weirkeeper.Jobs(conn).enqueue_many(KIND, NASTY)
    stored = conn.execute("select args from weirkeeper.job order by id").fetchall()
    assert [row[0] for row in stored] == NASTY
    assert len(ids) == len(NASTY)


def test_all_exist_if_and_only_if_the_transaction_commits(conn, database_url):
    jobs = weirkeeper.Jobs(conn)
    jobs.enqueue_many(KIND, numbered(100))
    conn.rollback()
    ids = jobs.enqueue_many(KIND, numbered(3))
    more = jobs.enqueue_many(KIND, numbered(2))
    with psycopg.connect(database_url) as other:
        assert count(other) == 0
        conn.commit()
        other.rollback()
        assert other.execute("select id::text from weirkeeper.job order by id").fetchall() == [
            (job,) for job in [*ids, *more]
        ]


def test_in_autocommit_mode_it_is_one_transaction_too(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        jobs = weirkeeper.Jobs(conn)
        assert len(jobs.enqueue_many(KIND, numbered(5))) == 5
        assert len(jobs.enqueue_many(KIND, numbered(5))) == 5
        with pytest.raises(UnknownKind):
            jobs.enqueue_many("no.such", numbered(5))
        assert count(conn) == count(conn, "ready") == 10
        with conn.transaction(force_rollback=True):
            jobs.enqueue_many(KIND, numbered(5))
        assert count(conn) == 10


def test_none_is_none(conn):
    assert weirkeeper.Jobs(conn).enqueue_many(KIND, []) == []
    assert count(conn) == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ([1], r"args_list\[2\] of kind corpus.index: expected a JSON object"),
        ({"x": float("nan")}, r"args_list\[2\].*finite"),
        ({"x": "a\0b"}, r"args_list\[2\].*NUL"),
        ({"x": "\ud800"}, r"args_list\[2\].*surrogate"),
        ({"x": "a" * 262_144}, r"args_list\[2\].*at most 262144 bytes"),
    ],
)
def test_a_bad_row_is_refused_in_words_and_leaves_the_transaction_usable(conn, row, said):
    conn.execute("create temporary table business (n integer)")
    with pytest.raises(InvalidArguments, match=said):
        weirkeeper.Jobs(conn).enqueue_many(KIND, [{}, {}, row, {}])
    conn.execute("insert into business values (1)")
    assert count(conn) == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("'{}', '[1]'", r"args\[2\] of kind corpus.index: expected a JSON object; got array"),
        ("'{}', null", r"args\[2\].*got NULL"),
        ("'{}', jsonb_build_object('x', repeat('a', 262144))", r"args\[2\].*at most 262144 bytes"),
        ("'{}', ('{\"x\":' || repeat('[', 64) || repeat(']', 64) || '}')::jsonb", "64 levels"),
        ("'{}', jsonb_build_object('x', 10::numeric ^ 4001)", "4000 digits"),
    ],
)
def test_sql_refuses_it_as_well_before_anything_is_written(conn, rows, said):
    with pytest.raises(psycopg.Error, match=said) as refused, conn.transaction():
        conn.execute(f"select weirkeeper.enqueue_many('{KIND}', array[{rows}]::jsonb[])")
    assert refused.value.sqlstate == "WK002"
    assert count(conn) == 0


def test_rows_staged_by_hand_must_be_numbered_from_1(conn):
    for numbers in ((0, 1), (1, 3), (2, 3)):
        with conn.transaction(force_rollback=True):
            conn.execute("select weirkeeper.open_staging()")
            conn.execute(
                "insert into pg_temp.weirkeeper_staging select n, '{}' from unnest(%s::int[]) n",
                (list(numbers),),
            )
            with pytest.raises(psycopg.Error, match="number them from 1"):
                conn.execute("select weirkeeper.enqueue_staged(%s)", (KIND,))


def test_options_are_those_of_each(conn, worker):
    moment = datetime.now(UTC) + timedelta(hours=1)
    opts = EnqueueOpts(
        run_at=moment, priority=1, awaited=False, owner_id="o", max_attempts=3, timeout=1.5,
        trace="t", tags=("a", "b"), expires_at=moment + timedelta(hours=1),
    )  # fmt: skip
    weirkeeper.Jobs(conn).enqueue_many(KIND, numbered(2), opts)
    rows = conn.execute(
        "select queue, run_at, priority, awaited, owner_id, max_attempts, timeout_ms, trace, tags"
        " from weirkeeper.job"
    ).fetchall()
    assert rows == [("index", moment, 1, False, "o", 3, 1500, "t", ["a", "b"])] * 2
    assert (
        conn.execute("select run_at, why from weirkeeper.scheduled").fetchall()
        == [(moment, "delay")] * 2
    )
    assert count(conn, "expiry") == 2
    assert count(conn, "ready") == 0
    weirkeeper.Jobs(conn).enqueue_many(KIND, numbered(2))
    conn.commit()
    assert [c.max_attempts for c in Claims(worker, "index", 1).claim([KIND], 9)] == [10, 10]


def test_unique_within_the_call_and_with_what_is_there(conn):
    unique = EnqueueOpts(unique=Unique())
    jobs = weirkeeper.Jobs(conn)
    there = jobs.enqueue(KIND, {"n": 1}, unique)
    ids = jobs.enqueue_many(KIND, [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 0}], unique)
    assert ids[1] == there
    assert ids[0] == ids[3]
    assert len(set(ids)) == 3
    assert count(conn) == count(conn, "ready") == count(conn, "unique_key") == 3
    assert jobs.enqueue_many(KIND, numbered(3), unique) == ids[:3]
    assert jobs.enqueue(KIND, {"n": 2}, unique) == ids[2]


def test_a_client_cursor_and_another_row_factory_do(database_url):
    with psycopg.connect(
        database_url, cursor_factory=psycopg.ClientCursor, row_factory=psycopg.rows.dict_row
    ) as conn:
        jobs = weirkeeper.Jobs(conn)
        assert len(jobs.enqueue_many(KIND, NASTY, EnqueueOpts(tags=("a'b",)))) == 4
        assert jobs.enqueue(KIND, NASTY[0])


def test_consumers_asleep_are_woken_once(conn, database_url):
    number = conn.execute("select no from weirkeeper.queue where name = 'index'").fetchone()[0]
    conn.commit()
    with psycopg.connect(database_url, autocommit=True) as sleeper:
        sleeper.execute(f"listen weirkeeper_queue_{number}")
        sleeper.execute("select pg_advisory_lock(1464160587, %s)", (number * 2,))
        weirkeeper.Jobs(conn).enqueue_many(KIND, numbered(50))
        conn.commit()
        assert len(list(sleeper.notifies(timeout=5, stop_after=1))) == 1
        assert list(sleeper.notifies(timeout=0)) == []


@pytest.mark.slow
def test_a_hundred_thousand_in_one_call_cost_less_each_than_one_by_one(conn):
    jobs = weirkeeper.Jobs(conn)
    began = time.perf_counter()
    for args in numbered(1000):
        jobs.enqueue(KIND, args)
    alone = (time.perf_counter() - began) / 1000
    began = time.perf_counter()
    ids = jobs.enqueue_many(KIND, numbered(100_000))
    together = (time.perf_counter() - began) / 100_000
    assert len(ids) == 100_000
    assert together * 5 < alone, (together, alone)
    assert count(conn, "ready") == 101_000
