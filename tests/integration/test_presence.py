"""A process that stays registered: ready when it works, a new life when the old one was given up."""

from __future__ import annotations

import threading

import pytest

from shared.postgres.presence import Presence
from shared.postgres.processes import Registration
from tests.support.rows import session
from tests.support.waiting import until

WHAT = Registration("listener", "listener", None, "1", 3, 0)


@pytest.fixture
def conn(database_url):
    with session(database_url) as made:
        yield made


def lives(conn) -> list[tuple[str, str | None]]:
    return conn.execute("select phase, address from weirkeeper.process order by epoch").fetchall()


def test_it_is_ready_once_it_works_and_stopped_in_the_end(database_url, conn):
    works = threading.Event()
    presence = Presence(database_url, WHAT, "127.0.0.1:1", works.is_set, pytest.fail)
    presence.start()
    until(lambda: lives(conn) == [("starting", None)], 5, "registered")
    assert presence.registered()
    works.set()
    until(lambda: lives(conn) == [("ready", "127.0.0.1:1")], 5, "ready")
    presence.drain()
    until(lambda: lives(conn) == [("draining", "127.0.0.1:1")], 5, "draining")
    presence.stop()
    assert lives(conn) == [("stopped", "127.0.0.1:1")]
    assert not presence.registered()


def test_a_life_that_was_given_up_is_followed_by_another(database_url, conn):
    presence = Presence(database_url, WHAT, "a:1", lambda: True, pytest.fail)
    presence.start()
    until(lambda: lives(conn) == [("ready", "a:1")], 5, "ready")
    conn.execute("update weirkeeper.process set phase = 'stopped'")
    until(lambda: lives(conn) == [("stopped", "a:1"), ("ready", "a:1")], 10, "a new life")
    presence.stop()


def test_it_waits_for_a_database_and_stops_while_it_does(empty_database_url):
    presence = Presence(empty_database_url, WHAT, "a:1", lambda: True, pytest.fail)
    presence.start()
    assert presence.started()
    assert not presence.registered()
    presence.stop()
    assert not presence.started()
