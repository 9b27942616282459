"""A process that stays registered: ready when it works, a new life when the old one was given up."""

from __future__ import annotations

import threading

import pytest

from shared.postgres.processes.presence import Presence
from shared.postgres.processes.registry import Registration
from tests.support.rows import session
from tests.support.waiting import until

WHAT = Registration("listener", "listener", None, "1", 3, 0)


@pytest.fixture
def conn(database_url):
    with session(database_url) as made:
        yield made


@pytest.fixture
def make():
    made: list[Presence] = []

    def presence(url: str, address: str, ready) -> Presence:
        made.append(Presence(url, WHAT, address, ready, pytest.fail))
        made[-1].start()
        return made[-1]

    yield presence
    for each in made:
        each.stop()


def lives(conn) -> list[tuple[str, str | None]]:
    return conn.execute("select phase, address from weirkeeper.process order by epoch").fetchall()


def test_it_is_ready_once_it_works_and_stopped_in_the_end(database_url, conn, make):
    works = threading.Event()
    presence = make(database_url, "127.0.0.1:1", works.is_set)
    until(lambda: lives(conn) == [("starting", None)], 5, "registered")
    until(presence.registered, 5, "registered, and known to be")
    works.set()
    until(lambda: lives(conn) == [("ready", "127.0.0.1:1")], 5, "ready")
    presence.drain()
    until(lambda: lives(conn) == [("draining", "127.0.0.1:1")], 5, "draining")
    presence.stop()
    assert lives(conn) == [("stopped", "127.0.0.1:1")]
    assert not presence.registered()


def test_a_life_that_was_given_up_is_followed_by_another(database_url, conn, make):
    make(database_url, "a:1", lambda: True)
    until(lambda: lives(conn) == [("ready", "a:1")], 5, "ready")
    conn.execute("update weirkeeper.process set phase = 'stopped'")
    until(lambda: lives(conn) == [("stopped", "a:1"), ("ready", "a:1")], 10, "a new life")


def test_it_waits_for_a_database_and_stops_while_it_does(empty_database_url, make):
    presence = make(empty_database_url, "a:1", lambda: True)
    assert presence.started()
    assert not presence.registered()
    presence.stop()
    assert not presence.started()
