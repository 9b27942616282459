"""Statements that are answered in raw values: what they bring, and what becomes of a session's others."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from shared.postgres.connect import Use, connect
from shared.postgres.prepared import ask, pieces

TEXT = "select %(a)s::bytea, %(b)s::text, (%(n)s::bigint + 1)::text, %(b)s::text || '!', null::text"
VALUES = {"a": b"\x00\xff\\x", "b": "ä", "n": 2**40}


@pytest.fixture
def conn(database_url):
    with closing(connect(database_url, "prepared", Use.HANDLER)) as opened:
        yield opened


def prepared(conn):
    found = conn.execute(
        "select count(*) from pg_prepared_statements where name like 'weirkeeper%'"
    )
    return found.fetchone()[0]


def test_values_go_and_come_as_they_are(conn):
    row = ask(conn, TEXT, VALUES)
    assert row == [b"\x00\xff\\x", "ä".encode(), b"1099511627777", "ä!".encode(), None]


@pytest.mark.parametrize("given", [[], [b""], [b"a", b"\x00" * 300, b"c"]])
def test_arrays_of_bytes_are_taken_apart(conn, given):
    text = "select array(select decode(v, 'hex') from jsonb_array_elements_text(%(v)s::jsonb) v)"
    found = ask(conn, text, {"v": str([one.hex() for one in given]).replace("'", '"')})[0]
    assert pieces(found) == given


def test_a_statement_is_prepared_once(conn):
    for n in range(3):
        assert ask(conn, "select %(n)s::text", {"n": n}) == [str(n).encode()]
    assert prepared(conn) == 1


def test_what_a_session_forgot_is_prepared_again(conn):
    assert ask(conn, "select %(n)s::text", {"n": 1}) == [b"1"]
    conn.execute("deallocate all")
    assert ask(conn, "select %(n)s::text", {"n": 2}) == [b"2"]


def test_an_error_is_the_drivers_and_the_session_goes_on(conn):
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            ask(conn, "select (1 / %(n)s::integer)::text", {"n": 0})
    with pytest.raises(psycopg.errors.UndefinedTable):
        ask(conn, "select x::text from nowhere_at_all where x = %(n)s", {"n": 0})
    assert ask(conn, "select %(n)s::text", {"n": 3}) == [b"3"]


def test_it_is_part_of_an_open_transaction(conn):
    with conn.transaction(force_rollback=True):
        conn.execute("create temporary table t (n integer)")
        assert ask(conn, "insert into t values (%(n)s) returning n::text", {"n": 5}) == [b"5"]
    with pytest.raises(psycopg.errors.UndefinedTable):
        conn.execute("select from t")


def test_a_session_that_ended_says_so(conn):
    ask(conn, "select %(n)s::text", {"n": 1})
    with closing(connect(conn.info.dsn + f" password={conn.info.password}", "killer")) as other:
        other.execute("select pg_terminate_backend(%s)", (conn.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        ask(conn, "select %(n)s::text, pg_sleep(5)::text", {"n": 1})
