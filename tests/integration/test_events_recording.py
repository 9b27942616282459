"""Recording: an event exists iff the business write commits, whichever way it came in."""

from __future__ import annotations

import uuid

import psycopg
import pytest
from psycopg.types.json import Jsonb

from shared.errors import InvalidArguments, UnknownEventType
from weirkeeper import Recorder

TYPE = "corpus.note.changed"


def python(conn, **given):
    return Recorder(conn).record(TYPE, **given)


def function(conn, **given):
    given = {**given, "data": Jsonb(given.get("data", {}))}
    named = ", ".join(f"{name} => %({name})s" for name in given)
    row = conn.execute(f"select weirkeeper.record_event('{TYPE}', {named})", given).fetchone()
    return str(row[0])


def plain_insert(conn, subject="", owner_id=None, data=None, trace=None):
    row = conn.execute(
        "insert into weirkeeper.event (type, subject, owner_id, data, trace)"
        " values (%s, %s, %s, %s, %s) returning id",
        (TYPE, subject, owner_id, Jsonb(data or {}), trace),
    ).fetchone()
    return str(row[0])


WAYS = pytest.mark.parametrize("record", [python, function, plain_insert])


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url) as connection:
        connection.execute("create table orders (id integer)")
        connection.commit()
        yield connection


def count(conn, table):
    return conn.execute(f"select count(*) from {table}").fetchone()[0]


@WAYS
def test_a_commit_makes_the_event_and_the_write(conn, record):
    conn.execute("insert into orders values (17)")
    event = record(
        conn, subject="note://a", owner_id="me", data={"note_id": "7", "x": [1, "é"]}, trace="00-1"
    )
    conn.commit()
    (row,) = conn.execute(
        "select e.id, e.type, e.subject, e.owner_id, e.data, e.trace, p.seq"
        " from weirkeeper.event e join weirkeeper.event_pending p on p.event_id = e.id"
    ).fetchall()
    assert row[:6] == (
        uuid.UUID(event),
        TYPE,
        "note://a",
        "me",
        {"note_id": "7", "x": [1, "é"]},
        "00-1",
    )
    assert count(conn, "orders") == 1


@WAYS
def test_a_rollback_makes_neither(conn, record):
    conn.execute("insert into orders values (17)")
    record(conn)
    conn.rollback()
    assert [count(conn, t) for t in ("orders", "weirkeeper.event", "weirkeeper.event_pending")] == [
        0,
        0,
        0,
    ]


@WAYS
def test_a_savepoint_undoes_the_event_alone(conn, record):
    conn.execute("insert into orders values (17)")
    with conn.transaction(force_rollback=True):
        record(conn)
    record(conn)
    conn.commit()
    assert (count(conn, "orders"), count(conn, "weirkeeper.event_pending")) == (1, 1)


@WAYS
def test_a_wake_fits_whatever_the_subject(conn, record, database_url):
    subject = "𝕏" * 2048
    assert len(subject.encode()) > 8000, "more than a notice holds"
    with psycopg.connect(database_url, autocommit=True) as sleeper:
        sleeper.execute("listen weirkeeper_relay")
        sleeper.execute("select pg_advisory_lock(1464160587, 0), pg_advisory_lock(1464160587, 1)")
        record(conn, subject=subject)
        conn.commit()
        assert [n.payload for n in sleeper.notifies(timeout=5, stop_after=1)] == [""]
    row = conn.execute("select subject from weirkeeper.event").fetchone()
    assert row == (subject,), "literally"


def test_without_a_transaction_a_record_is_its_own(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        Recorder(conn).record(TYPE)
    with psycopg.connect(database_url) as other:
        assert count(other, "weirkeeper.event") == 1


def test_with_tx_leaves_the_original_as_it_is(database_url, conn):
    with psycopg.connect(database_url) as other:
        recorder = Recorder(conn)
        recorder.with_tx(other).record(TYPE)
        recorder.record(TYPE)
        other.rollback()
    conn.commit()
    assert count(conn, "weirkeeper.event") == 1


def test_an_undeclared_type_is_refused(conn):
    with pytest.raises(UnknownEventType, match=r"got 'order\.lost'; declare it"):
        Recorder(conn).record("order.lost")
    conn.rollback()
    for statement in (
        "select weirkeeper.record_event('order.lost')",
        "insert into weirkeeper.event (type, subject) values ('order.lost', '')",
    ):
        with pytest.raises(psycopg.Error) as refused:
            conn.execute(statement)
        assert refused.value.sqlstate == "WK003"
        conn.rollback()


@pytest.mark.parametrize(
    "given",
    [
        {"data": {"x": "\0"}},
        {"data": {"x": "\ud800"}},
        {"data": {"x": float("nan")}},
        {"data": {"x": float("inf")}},
        {"data": {"x": b"bytes"}},
        {"data": {1: "x"}},
        {"data": {"x": "y" * 262_144}},
        {"data": [1, 2]},
        {"data": 7},
        {"subject": "a\0b"},
        {"subject": "\udfff"},
        {"subject": "x" * 2049},
        {"subject": "x" * 9000},
        {"subject": 17},
        {"owner_id": "x" * 201},
        {"owner_id": 17},
        {"trace": "x" * 201},
    ],
)
def test_python_refuses_what_cannot_be_stored_and_the_callers_transaction_lives(conn, given):
    conn.execute("insert into orders values (17)")
    with pytest.raises(InvalidArguments, match=rf"(data|subject|owner_id|trace) of event {TYPE}: "):
        Recorder(conn).record(TYPE, **given)
    conn.commit()
    assert (count(conn, "orders"), count(conn, "weirkeeper.event")) == (1, 0)


@pytest.mark.parametrize("data", ["[]", "7", "null", '{"x":"' + "y" * 262_144 + '"}'])
def test_sql_refuses_data_that_is_no_small_object(conn, data):
    for statement in (
        f"select weirkeeper.record_event('{TYPE}', data => %s::jsonb)",
        f"insert into weirkeeper.event (type, subject, data) values ('{TYPE}', '', %s::jsonb)",
    ):
        with pytest.raises(psycopg.Error) as refused:
            conn.execute(statement, [data])
        assert refused.value.sqlstate == "WK002"
        conn.rollback()


def test_a_column_that_does_not_fit_is_refused_by_the_database_as_well(conn):
    with pytest.raises(psycopg.errors.CheckViolation):
        function(conn, subject="x" * 2049)


def test_many_events_in_one_insert_keep_their_order(conn):
    conn.execute(
        "insert into weirkeeper.event (type, subject)"
        " select 'corpus.note.changed', i::text from generate_series(1, 300) i"
    )
    conn.commit()
    rows = conn.execute(
        "select e.subject from weirkeeper.event_pending p"
        " join weirkeeper.event e on e.id = p.event_id order by p.seq"
    ).fetchall()
    assert [int(subject) for (subject,) in rows] == list(range(1, 301))


@pytest.mark.parametrize("moment", ["infinity", "-infinity", "4713-01-01 BC", "294276-01-01"])
def test_a_moment_that_no_program_can_read_is_refused(conn, moment):
    with pytest.raises(psycopg.errors.CheckViolation, match="a moment in the years 1 to 9999; got"):
        conn.execute(
            "insert into weirkeeper.event (type, occurred_at) values (%s, %s)", (TYPE, moment)
        )
