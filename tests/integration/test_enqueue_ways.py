"""A job is the same row whichever way it was added: the short way of enqueue, the long one, a bare insert."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import weirkeeper
from shared.jobs.port import EnqueueOpts

KIND = "corpus.index"
GIVEN = [
    {},
    {"args": '\'{"a": [1, "ü"]}\''},
    {"args": "jsonb_build_object('long', repeat('x', 200))"},
    {"owner_id": "'o'", "trace": "'t'"},
    {"priority": "4", "awaited": "false"},
    {"max_attempts": "3", "timeout_ms": "7"},
]
ROWS = (
    "select to_jsonb(j) - 'id' - 'created_at' - 'tags', "
    "to_jsonb(r) - 'seq' - 'job_id' - 'ready_at', r.job_id = j.id, "
    "(select count(*) from weirkeeper.scheduled), (select count(*) from weirkeeper.expiry) "
    "from weirkeeper.job j left join weirkeeper.ready r on r.job_id = j.id"
)


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(database_url) as opened:
        yield opened


def added(conn: psycopg.Connection[tuple[object, ...]], text: str) -> list[tuple[object, ...]]:
    """The rows that a statement leaves; taken back."""
    conn.execute(text.encode())
    found = conn.execute(ROWS).fetchall()
    conn.rollback()
    return found


@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("given", GIVEN, ids=lambda given: ",".join(given) or "nothing")
def test_all_ways_lead_to_the_same_rows(conn, given, fair):
    conn.execute("update weirkeeper.kind set fair = %s where name = %s", (fair, KIND))
    conn.commit()
    names = {"kind": f"'{KIND}'", **given}
    said = ", ".join(f"{name} => {value}" for name, value in names.items())
    short = added(conn, f"select weirkeeper.enqueue({said})")
    assert len(short) == 1
    assert added(conn, f"select weirkeeper.enqueue({said}, tags => '{{a}}')") == short
    insert = f"insert into weirkeeper.job ({', '.join(names)}) values ({', '.join(names.values())})"
    assert added(conn, insert) == short


def test_python_says_the_same_with_and_without_options(conn):
    jobs = weirkeeper.Jobs(conn)
    jobs.enqueue(KIND, {"n": 1})
    short = conn.execute(ROWS).fetchall()
    conn.rollback()
    jobs.enqueue(KIND, {"n": 1}, EnqueueOpts())
    assert conn.execute(ROWS).fetchall() == short


def test_the_usual_job_meets_no_trigger(conn):
    """It is one statement: what a trigger did to it would be done by nobody."""
    conn.execute("alter table weirkeeper.job disable trigger job_complete")
    job = conn.execute("select weirkeeper.enqueue(%s)", (KIND,)).fetchone()
    assert conn.execute("select job_id from weirkeeper.ready").fetchall() == [job]
