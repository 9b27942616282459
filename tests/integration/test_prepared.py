"""Statements without a cursor: what they bring, what becomes of errors, and of a session that ends."""

from __future__ import annotations

import gc
import signal
import time
import weakref
from contextlib import closing, contextmanager, nullcontext

import psycopg
import pytest

from shared.postgres.driver.connect import Use, connect
from shared.postgres.driver.failures import is_transient
from shared.postgres.driver.prepared import Prepared, as_array, as_texts, pieces

AWKWARD = ['"', "\\", '{"a": "\\u00e4\\\\ , }"}', "", "null", None, "ä\n"]
ECHO = "select %(n)s::text"


@pytest.fixture
def conn(database_url):
    with closing(connect(database_url, "prepared", Use.HOT)) as opened:
        yield opened


@pytest.fixture(params=["rows", "raw"])
def asked(request, conn):
    """Asks for one value as text, in both ways."""

    def made(text=ECHO):
        each = Prepared(conn, text)

        def ask(n):
            if request.param == "raw":
                return each.raw({"n": n})[0].decode()
            return each.rows({"n": n})[0][0]

        return ask

    return made


@pytest.fixture(params=["alone", "within"])
def around(request, conn):
    """Alone, and within a transaction, where the driver's cursor does it."""
    return conn.transaction if request.param == "within" else nullcontext


def counted(conn):
    found = conn.execute(
        "select count(*) from pg_prepared_statements where name like 'weirkeeper%'"
    )
    return found.fetchone()[0]


def test_texts_come_as_they_went(conn, around):
    each = Prepared(conn, "select %(n)s::bigint, %(t)s::text[], %(a)s::bigint[], %(none)s::text")
    values = {"n": str(2**40), "t": as_texts(AWKWARD), "a": as_array([1, -2]), "none": None}
    with around():
        assert each.rows(values) == [(2**40, AWKWARD, [1, -2], None)]


def test_all_rows_come(conn, around):
    each = Prepared(conn, "select n, to_jsonb(n) from generate_series(1, %(n)s::integer) n")
    with around():
        assert each.rows({"n": 3}) == [(1, 1), (2, 2), (3, 3)]
        assert each.rows({"n": 0}) == []


def test_raw_values_go_and_come_as_they_are(conn, around):
    text = "select %(a)s::bytea, %(b)s::text, (%(n)s::bigint + 1)::text, %(b)s::text || '!', null"
    with around():
        row = Prepared(conn, text).raw({"a": b"\x00\xff\\x", "b": "ä", "n": 2**40})
    assert row == [b"\x00\xff\\x", "ä".encode(), b"1099511627777", "ä!".encode(), None]


@pytest.mark.parametrize("given", [[], [b""], [b"a", b"\x00" * 300, b"c"]])
def test_arrays_of_bytes_are_taken_apart(conn, around, given):
    text = "select array(select decode(v, 'hex') from jsonb_array_elements_text(%(v)s::jsonb) v)"
    with around():
        found = Prepared(conn, text).raw({"v": str([one.hex() for one in given]).replace("'", '"')})
    assert pieces(found[0]) == given


def test_a_statement_is_prepared_once(conn, asked):
    ask = asked()
    for n in range(3):
        assert ask(n) == str(n)
    assert counted(conn) == 1


def test_what_a_session_forgot_is_prepared_again(conn, asked):
    ask = asked()
    assert ask(1) == "1"
    conn.execute("deallocate all")
    assert ask(2) == "2"
    assert counted(conn) == 1


def test_a_transaction_after_one_that_was_rolled_back_is_served(conn, asked):
    ask = asked()
    assert ask(0) == "0"
    for n in range(3):
        with conn.transaction(force_rollback=True):
            conn.execute("select 1", prepare=True)  # the driver then forgets all by the rollback
            assert ask(n) == str(n)
    assert ask(4) == "4"


def test_it_is_part_of_an_open_transaction(conn, asked):
    with conn.transaction(force_rollback=True):
        conn.execute("create temporary table t (n integer)")
        assert asked("insert into t values (%(n)s) returning n::text")(5) == "5"
    with pytest.raises(psycopg.errors.UndefinedTable):
        conn.execute("select from t")


def test_it_begins_one_where_each_statement_does(database_url):
    with closing(psycopg.connect(database_url)) as conn:
        conn.execute("create temporary table t (n integer)")
        conn.commit()
        insert = Prepared(conn, "insert into t values (%(n)s) returning n::text")
        assert insert.raw({"n": 1}) == [b"1"]
        assert insert.rows({"n": 2}) == [("2",)]
        conn.rollback()
        assert conn.execute("select count(*) from t").fetchone() == (0,)


def test_an_error_is_the_drivers_and_the_session_goes_on(conn, asked):
    ask = asked("select (1 / %(n)s::integer)::text")
    nowhere = asked("select x::text from nowhere_at_all where x = %(n)s")
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            ask(0)
        with pytest.raises(psycopg.errors.UndefinedTable):
            nowhere(0)
    assert ask(1) == "1"


def test_a_session_that_was_ended_is_gone_for_now(conn, asked, database_url):
    ask = asked()
    ask(1)
    with closing(connect(database_url, "other")) as other:
        other.execute("select pg_terminate_backend(%s, 5000)", (conn.info.backend_pid,))
    for _ in range(2):
        with pytest.raises(psycopg.Error) as caught:
            ask(2)
        assert is_transient(caught.value), caught.value
        assert conn.closed


def test_it_does_not_keep_a_session_alive(database_url):
    conn = connect(database_url, "forgotten", Use.HOT)
    each, conn_lives = Prepared(conn, ECHO), weakref.ref(conn)
    each.rows({"n": 1})
    conn.close()
    del conn
    gc.collect()
    assert conn_lives() is None
    with pytest.raises(psycopg.OperationalError):
        each.raw({"n": 1})


@contextmanager
def interrupted(seconds):
    """A signal whose handler raises, as the one that asks a job to end."""

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_raw_is_interrupted_by_a_signal_and_the_session_goes_on(conn):
    nap = Prepared(conn, "select pg_sleep(%(n)s::float8)::text, %(n)s::text")
    began = time.monotonic()
    with interrupted(0.2):
        nap.raw({"n": 20})
    assert time.monotonic() - began < 10
    assert nap.raw({"n": 0})[1] == b"0"


def test_raw_is_served_after_an_interrupt_while_it_was_prepared(conn, database_url):
    with closing(connect(database_url, "holder")) as holder:
        holder.execute("create table held (n integer)")
        each = Prepared(conn, "select count(*)::text from held where n = %(n)s::integer")
        with holder.transaction():
            holder.execute("lock table held in access exclusive mode")
            with interrupted(0.2):
                each.raw({"n": 1})
    for _ in range(2):
        assert each.raw({"n": 1}) == [b"0"]


def test_raw_is_served_after_an_interrupt_just_after_it_was_prepared(conn, monkeypatch):
    each = Prepared(conn, ECHO)
    awaited = each._awaited

    def interrupted_then(*sent):
        awaited(*sent)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(each, "_awaited", interrupted_then)
        with pytest.raises(KeyboardInterrupt):
            each.raw({"n": 1})
    assert counted(conn) == 1
    assert each.raw({"n": 2}) == [b"2"]
