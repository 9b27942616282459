"""A relay that freezes in the middle of a pass holds nothing up for longer than a few seconds."""

from __future__ import annotations

import signal

import psycopg
import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.processes.registry import SILENT
from tests.support.bounds import at_most
from tests.support.waiting import until

RECORD = "select weirkeeper.record_event('corpus.note.changed', subject => 'note://' || n::text)"
READY = "select count(*) from weirkeeper.process where slot = %s and phase = 'ready'"
WAITS = (
    "select count(*) from pg_stat_activity where application_name like %s"
    " and wait_event_type = 'Lock' and datname = current_database()"
)
ASLEEP = (
    "select count(*) > 1 from pg_locks l join weirkeeper.process p on l.pid = any(p.backend_pids)"
    " where p.slot = 'relay' and l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted"
)
HELD = 10.0  # seconds that rows may be held at most


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def one(conn, statement, *params):
    return conn.execute(statement, params or None).fetchone()[0]


def relay(programs, conn, slot):
    program = programs.start("relay", "--slot", slot)
    until(lambda: one(conn, READY, slot), 60, f"{slot} is ready")
    return program


def test_frozen_in_its_pass(programs, conn, database_url):
    frozen = relay(programs, conn, "relay")
    with psycopg.connect(database_url) as blocker:
        blocker.execute("lock table weirkeeper.job in share mode")  # a pass waits in its insert
        conn.execute(f"{RECORD} from generate_series(1, 50) n")
        until(lambda: one(conn, WAITS, "weirkeeper relay passes%"), 30, "the pass is under way")
        frozen.send(signal.SIGSTOP)
    try:
        relay(programs, conn, "relay-2")
        conn.execute(f"{RECORD} from generate_series(51, 100) n")
        until(lambda: one(conn, "select count(*) from weirkeeper.event_pending") == 0, HELD, "all")
    finally:
        frozen.send(signal.SIGCONT)
    assert one(conn, "select count(*) from weirkeeper.event_fanout") == 100
    until(lambda: one(conn, READY, "relay"), 60, "the frozen one works again")
    assert frozen.terminate() == 0


@pytest.mark.slow
def test_one_that_freezes_asleep_makes_writers_notify_no_longer_than_its_lease(programs, conn):
    frozen = relay(programs, conn, "relay")
    until(lambda: one(conn, ASLEEP), 20, "it sleeps, and holds the locks that say so")
    [sleeper] = one(conn, "select backend_pids from weirkeeper.process where slot = 'relay'")
    frozen.send(signal.SIGSTOP)
    try:
        relay(programs, conn, "relay-2")
        gone = "select not exists (select from pg_stat_activity where pid = %s)"
        assert not one(conn, gone, sleeper), "nobody alive loses a session"
        until(lambda: one(conn, gone, sleeper), SILENT + at_most(5, busy=30), "it is ended")
    finally:
        frozen.send(signal.SIGCONT)
    until(lambda: one(conn, ASLEEP), 60, "it connects again, and sleeps")
    assert frozen.terminate() == 0


def test_a_session_of_ours_that_stops_in_a_transaction_is_ended_and_its_rows_are_free(
    conn, database_url
):
    conn.execute(f"{RECORD} from generate_series(1, 3) n")
    session = connect(database_url, "frozen")
    session.execute("begin")
    session.execute("select seq from weirkeeper.event_pending for update")
    free = "select seq from weirkeeper.event_pending for update skip locked"
    assert not conn.execute(free).fetchall()
    until(lambda: len(conn.execute(free).fetchall()) == 3, HELD, "the server ended the session")
    with pytest.raises(psycopg.Error):
        session.execute("select 1")
    session.close()
