"""A server with few connections: what is refused at boot, and two releases that overlap.

The application's own inserts never fail for want of a connection.
"""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest

from shared.app import load_app
from shared.config.queues import QUEUES
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from tests.support.cluster import FAST, ThrowawayCluster
from tests.support.databases import Databases
from tests.support.processes import Programs
from tests.support.waiting import until

EVERY_QUEUE = "tests.support.every_queue:app"
LONG = "select weirkeeper.enqueue('long.index', '{\"seconds\": 0}')"


class Inserts:
    """An application that enqueues through a fresh connection each time, from several threads."""

    def __init__(self, url, threads=8):
        self._url = url
        self._over = threading.Event()
        self.done, self.failed = 0, []
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]

    def _work(self):
        while not self._over.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True) as conn:
                    conn.execute(LONG)
                self.done += 1
            except psycopg.Error as error:
                self.failed.append(str(error))
            self._over.wait(0.02)

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def small(short_tmp):
    """A server with few connections, and two homes on it: of an old release and of a new one."""
    started = []

    def make(connections):
        cluster = ThrowawayCluster({**FAST, "max_connections": str(connections)})
        databases = Databases(cluster.url)
        url = databases.create()
        with connect(url, "test") as conn:
            declare(conn, load_app(EVERY_QUEUE))
        databases.close()
        homes = []
        for name in ("old", "new"):
            (short_tmp / name).mkdir()
            programs = Programs(Path(short_tmp / name), url)
            programs.environment |= {
                "WEIRKEEPER_APP": EVERY_QUEUE,
                "WEIRKEEPER_GENERATION": name,
                "WEIRKEEPER_CHILDREN": ",".join(f"{queue.name}=1" for queue in QUEUES),
                "TEST_EFFECTS": str(short_tmp / "effects"),
            }
            homes.append(programs)
        started.append((cluster, homes))
        return url, *homes

    yield make
    for cluster, homes in started:
        for programs in homes:
            programs.close()
        cluster.stop()


def start_all(programs):
    workers = tuple(("workers", queue.name) for queue in QUEUES)
    commands = (("relay",), *workers, ("listener",), ("metrics",))
    return [programs.start(*command) for command in commands]


def ready(url, generation):
    with psycopg.connect(url, autocommit=True) as conn:
        return conn.execute(
            "select count(*) from weirkeeper.process where phase = 'ready' and generation = %s",
            (generation,),
        ).fetchone()[0]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_with_40_connections_a_start_is_refused_and_the_applications_inserts_never_fail(small):
    url, old, _ = small(40)
    with Inserts(url) as inserts:
        worker = old.start("workers", "index")
        assert worker.wait(60) == 78
        assert "at most half of the server's 37 usable connections (18)" in worker.text()
        assert "index (3 + 1 children) 4 + " in worker.text()
        assert "migrator 1 = 31'" in worker.text()
    assert inserts.done
    assert inserts.failed == []


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("connections", "threads"),
    [
        (80, 8),  # usable: 77; a release: at most 31; the application: 8
        (65, 4),  # usable: 62, the fewest with which a release is not refused; the application: 4
    ],
)
def test_while_two_releases_overlap_the_applications_inserts_never_fail(
    small, connections, threads
):
    url, old, new = small(connections)
    with Inserts(url, threads) as inserts:
        first = start_all(old)
        until(lambda: ready(url, "old") == 8, 90, "the old release is ready")
        second = start_all(new)
        until(lambda: ready(url, "new") == 8, 90, "the new release is ready beside it")
        for program in first:
            assert program.terminate(60) == 0, program.text()
        enough = inserts.done + 50
        until(lambda: inserts.done > enough, 30, "the application went on meanwhile")
    assert inserts.failed == []
    for program in second:
        assert program.terminate(60) == 0, program.text()
