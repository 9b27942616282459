"""What a handler has done must survive a crash of Postgres at least as well as the word of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import psycopg
import pytest

from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.site.search import PostgresSearch
from shared.site.note import Note
from tests.support.cluster import FAST, ThrowawayCluster
from tests.support.databases import Databases
from tests.support.waiting import until


@pytest.fixture
def crashing_url() -> Iterator[str]:
    """A database on a server of its own, which writes nothing to disk that nobody waits for."""
    cluster = ThrowawayCluster({**FAST, "wal_writer_delay": "10s"})
    yield Databases(cluster.url).create()
    cluster.stop()


def crash(url: str) -> None:
    """End one server process by SIGKILL: all sessions end, shared memory is lost, recovery runs."""
    with psycopg.connect(url) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            victim.execute("select 1")


def again(url: str) -> Connection:
    def attempt() -> Connection | None:
        try:
            return connect(url, "again")
        except WeirkeeperError:
            return None

    return until(attempt, 30, "the server has recovered")


def test_an_indexed_note_survives_a_crash_right_after_its_job_said_done(crashing_url):
    with connect(crashing_url, "child", Use.HANDLER) as conn:
        note = Note(
            "1", 1, "me", "wiki", "a", "Heron", "a heron at the weir", "", (), (), True, False
        )
        assert PostgresSearch(conn).put([note]) == 1
        # What nobody waits for is lost: otherwise this test would prove nothing.
        conn.execute("set synchronous_commit = off")
        conn.execute("create table site.lost ()")
        crash(crashing_url)
    with again(crashing_url) as conn:
        assert conn.execute("select to_regclass('site.lost')").fetchone() == (None,)
        found = PostgresSearch(conn).search("heron", owner_id="me")
        assert [hit.note_id for hit in found.hits] == ["1"]
        assert PostgresSearch(conn).search("hern", owner_id="me").hits, "the words for typos, too"
