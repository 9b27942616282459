"""Enqueueing: what is stored, what is refused in words, and that a refusal costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import weirkeeper
from shared.errors import InvalidArguments, UnknownKind
from shared.jobs.port import EnqueueOpts

KIND = "corpus.index"


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database_url) as opened:
        yield opened


def test_the_job_exists_if_and_only_if_the_transaction_commits(conn, database_url):
    jobs = weirkeeper.Jobs(conn)
    jobs.enqueue(KIND, {"n": 1})
    conn.rollback()
    kept = jobs.enqueue(KIND, {"n": 2})
    with psycopg.connect(database_url) as other:
        assert other.execute("select count(*) from weirkeeper.job").fetchone() == (0,)
        conn.commit()
        assert other.execute("select id::text from weirkeeper.job").fetchall() == [(kept,)]


def test_with_tx_leaves_the_original_intact(conn, database_url):
    jobs = weirkeeper.Jobs(conn)
    with psycopg.connect(database_url) as other:
        jobs.with_tx(other).enqueue(KIND, {"n": 1})
        other.commit()
    jobs.enqueue(KIND, {"n": 2})
    conn.rollback()
    assert conn.execute("select args from weirkeeper.job").fetchall() == [({"n": 1},)]


def test_every_option_arrives(conn):
    later = datetime.now(UTC) + timedelta(hours=1)
    opts = EnqueueOpts(
        run_at=later, priority=1, awaited=False, owner_id="o", max_attempts=3, timeout=1.5,
        trace="t",
    )  # fmt: skip
    weirkeeper.Jobs(conn).enqueue(KIND, {}, opts)
    row = conn.execute(
        "select run_at, priority, awaited, owner_id, max_attempts, timeout_ms, trace "
        "from weirkeeper.job"
    ).fetchone()
    assert row == (later, 1, False, "o", 3, 1500, "t")
    assert conn.execute("select run_at, why from weirkeeper.scheduled").fetchall() == [
        (later, "delay")
    ]
    assert conn.execute("select count(*) from weirkeeper.ready").fetchone() == (0,)


def test_the_kind_fills_in_what_is_left_out(conn):
    weirkeeper.Jobs(conn).enqueue(KIND, {})
    row = conn.execute(
        "select queue, priority, max_attempts, timeout_ms, awaited from weirkeeper.job"
    ).fetchone()
    assert row == ("index", 2, 10, 30_000, True)


@pytest.mark.parametrize(
    ("args", "opts", "said"),
    [
        ([1], {}, "expected a JSON object"),
        ({"x": float("nan")}, {}, "finite"),
        ({"x": "a\0b"}, {}, "NUL"),
        ({"x": "\ud800"}, {}, "surrogate"),
        ({"x": "a" * 262_144}, {}, "at most 262144 bytes"),
        ({"x": object()}, {}, "expected JSON values"),
        ({}, {"priority": 5}, "priority: expected a whole number from 1 to 4; got 5"),
        ({}, {"priority": 2.5}, "priority"),
        ({}, {"max_attempts": 0}, "max_attempts"),
        ({}, {"max_attempts": 2**40}, "max_attempts"),
        ({}, {"timeout": 0}, "timeout"),
        ({}, {"timeout": float("nan")}, "timeout"),
        ({}, {"owner_id": "a" * 201}, "owner_id"),
        ({}, {"owner_id": "a\0b"}, "owner_id"),
        ({}, {"trace": 7}, "trace"),
        ({}, {"run_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
    ],
)
def test_a_refusal_says_why_and_leaves_the_transaction_usable(conn, args, opts, said):
    conn.execute("create temporary table business (n integer)")
    conn.execute("insert into business values (1)")
    with pytest.raises(InvalidArguments, match=said):
        weirkeeper.Jobs(conn).enqueue(KIND, args, EnqueueOpts(**opts))
    assert conn.execute("select count(*) from business").fetchone() == (1,)


def test_an_unknown_kind_is_refused_at_once(conn):
    with pytest.raises(UnknownKind, match=r"expected a declared kind; got 'no\.such'"):
        weirkeeper.Jobs(conn).enqueue("no.such", {})
