"""After Postgres itself restarted, LISTEN stands again within 3 s, and nobody is forgotten."""

from __future__ import annotations

import threading
import time

import pytest

from shared.notices.channels import FINAL
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres.application.ear import PostgresEar
from tests.support.bounds import at_most
from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.rows import enqueue, finish, session
from tests.support.waiting import until


@pytest.fixture
def cluster():
    made = ThrowawayCluster()
    yield made
    made.stop()


def test_listen_stands_again_soon_after_a_restart(cluster):
    url = Databases(cluster.url).create()
    waiters, woken = Waiters(), threading.Event()
    source = NoticeSource(PostgresEar(url, "test"), waiters, pytest.fail, always=True)
    source.start()
    until(lambda: source.connected, 5, "LISTEN stands")
    with session(url) as conn:
        job_id = enqueue(conn)
    with waiters.register(FINAL, job_id, woken.set):
        cluster.stop_fast()
        until(lambda: not source.connected, 10, "the loss is seen")
        woken.wait(2)  # some tries fail meanwhile; nobody may be woken by them
        assert not woken.is_set()
        cluster.start()
        accepts = time.monotonic()
        until(lambda: source.connected, 20, "LISTEN stands again")
        assert time.monotonic() - accepts < at_most(3, busy=20)
        assert woken.wait(1), "whoever waits looks again"
        woken.clear()
        with session(url) as conn:
            finish(conn, job_id)
        assert woken.wait(0.2), "and hears notices again"
    source.stop()
