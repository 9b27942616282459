"""Notices under stress: what writers pay, who pins the queue of notices, how long sessions may dawdle."""

from __future__ import annotations

import psycopg
import pytest

from shared.postgres.application.ear import PostgresEar
from shared.postgres.driver.connect import Use, connect
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.inspection.gauges import areas, open_gauges
from shared.postgres.queues.wakes import RELAY_LOCK, Wakes, relay_channel
from tests.support.waiting import until

RECORD = "select weirkeeper.record_event('corpus.note.changed', subject => %s)"


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


@pytest.fixture
def sleeper(database_url):
    """A relay's ears."""
    wakes = Wakes(database_url, "relay", RELAY_LOCK, relay_channel())
    wakes.open()
    yield wakes
    wakes.close()


def heard(sleeper: Wakes) -> list[str]:
    """What was said up to now: a notice of our own comes behind all others."""
    said: list[str] = []
    sleeper.connection.execute("select pg_notify('weirkeeper_relay', 'the end')")
    until(lambda: said.extend(sleeper.drain()) or "the end" in said, 10, "the last notice")
    return said[:-1]


def record(conn, times, off=False):
    with conn.transaction():
        if off:
            conn.execute("set local weirkeeper.wake = off")
        for n in range(times):
            conn.execute(RECORD, [f"wiki://{n}"])


def test_a_transaction_says_one_empty_word_at_most_and_none_while_nobody_sleeps(conn, sleeper):
    record(conn, 20)
    assert heard(sleeper) == [], "nobody slept"
    until(sleeper.fall_asleep, 10, "it sleeps")
    record(conn, 20)
    record(conn, 1)
    assert heard(sleeper) == ["", ""], "one for each transaction, without a payload"
    record(conn, 20, off=True)
    assert heard(sleeper) == [], "the switch: its consumer polls"


def test_sessions_of_ours_that_listen_never_stand_in_a_transaction(conn, database_url, sleeper):
    ear = PostgresEar(database_url, "listener")
    ear.open()
    until(sleeper.fall_asleep, 10, "it sleeps")
    sleeper.drain()
    ear.notices(0)
    states = conn.execute(
        "select application_name, state, backend_xmin is null from pg_stat_activity"
        " where datname = current_database() and application_name like 'weirkeeper %'"
    ).fetchall()
    ear.close()
    assert {(name, state, free) for name, state, free in states} == {
        ("weirkeeper relay wakes", "idle", True),
        ("weirkeeper listener listen", "idle", True),
    }


@pytest.mark.parametrize("use", [use for use in Use if use is not Use.HANDLER])
def test_no_session_of_ours_may_dawdle_in_a_transaction(database_url, use):
    with connect(database_url, "x", use) as session:
        if use is Use.DURABLE:
            PostgresOutbox(session)  # whose settings are for good
        row = session.execute("show idle_in_transaction_session_timeout").fetchone()
        assert row == ("5s",)


def test_a_listener_that_sits_in_a_transaction_pins_the_queue_and_a_gauge_tells(conn, database_url):
    def usage() -> float:
        with open_gauges(database_url, "test") as session:
            found = areas([])["server"](session)
            return {reading.name: reading.value for reading in found}["notify_queue_usage"]

    with psycopg.connect(database_url, autocommit=True) as pinning:
        pinning.execute("listen anything")
        pinning.execute("begin")
        pinning.execute("select 1")
        before = usage()
        payload = "x" * 7000
        for n in range(3000):  # 21 MB: the queue holds 8 GB
            conn.execute("select pg_notify('anything', %s)", [f"{n}{payload}"])
        pinned = usage()
        assert pinned > before
        assert pinned > 0.001
        who = conn.execute(
            "select pid from pg_stat_activity where state = 'idle in transaction'"
            " and datname = current_database()"
        ).fetchall()
        assert who == [(pinning.info.backend_pid,)]
        pinning.execute("rollback")
        list(pinning.notifies(timeout=0.1))
        conn.execute("select pg_notify('anything', 'the end')")
    until(lambda: usage() < pinned / 2, 20, "the queue is free again")
