"""Statements without a cursor: what they bring, what becomes of errors, and of a session that ends."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from shared.postgres.connect import Use, connect
from shared.postgres.failures import is_transient
from shared.postgres.hot import Hot, as_array, as_texts

AWKWARD = ['"', "\\", '{"a": "\\u00e4\\\\ , }"}', "", "null", None, "ä\n"]


@pytest.fixture
def conn(database_url):
    with closing(connect(database_url, "hot", Use.HOT)) as opened:
        yield opened


def test_texts_come_as_they_went(conn):
    ask = Hot(conn, "select %(n)s::bigint, %(t)s::text[], %(a)s::bigint[], %(none)s::text")
    values = {"n": str(2**40), "t": as_texts(AWKWARD), "a": as_array([1, -2]), "none": None}
    assert ask(values) == [(2**40, AWKWARD, [1, -2], None)]


def test_all_rows_come(conn):
    ask = Hot(conn, "select n, to_jsonb(n) from generate_series(1, %(n)s::integer) n")
    assert ask({"n": "3"}) == [(1, 1), (2, 2), (3, 3)]
    assert ask({"n": "0"}) == []


def test_what_a_session_forgot_is_prepared_again(conn):
    ask = Hot(conn, "select %(n)s::bigint")
    assert ask({"n": "1"}) == [(1,)]
    conn.execute("deallocate all")
    assert ask({"n": "2"}) == [(2,)]


def test_a_transaction_after_one_that_was_rolled_back_is_served(conn):
    ask = Hot(conn, "select %(n)s::bigint")
    assert ask({"n": "0"}) == [(0,)]
    for n in range(3):
        with conn.transaction(force_rollback=True):
            conn.execute("select 1", prepare=True)  # the driver then forgets all by the rollback
            assert ask({"n": str(n)}) == [(n,)]
    assert ask({"n": "4"}) == [(4,)]


def test_an_error_is_the_drivers_and_the_session_goes_on(conn):
    ask = Hot(conn, "select 1 / %(n)s::integer")
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            ask({"n": "0"})
    with pytest.raises(psycopg.errors.UndefinedTable):
        Hot(conn, "select from nowhere_at_all where x = %(n)s")({"n": "0"})
    assert ask({"n": "1"}) == [(1,)]


def test_a_session_that_was_ended_is_gone_for_now(conn, database_url):
    ask = Hot(conn, "select %(n)s::bigint")
    ask({"n": "1"})
    with closing(connect(database_url, "other")) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", (conn.info.backend_pid,))
    for _ in range(2):
        with pytest.raises(psycopg.Error) as caught:
            ask({"n": "2"})
        assert is_transient(caught.value), caught.value
        assert conn.closed
