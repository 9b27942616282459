"""Waits of an application while the server stands still: bounded, and answered when it goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import psycopg
import pytest

from shared.errors import DatabaseUnavailable
from shared.notices import reads
from shared.postgres.application.waits import Last, PostgresWaits
from shared.postgres.application.waits_async import PostgresAsyncWaits
from tests.support.cluster import ThrowawayCluster, frozen
from tests.support.databases import Databases
from tests.support.rows import enqueue, finish
from tests.support.waiting import until

MARGIN = 2.0  # seconds beyond the bounds, for a busy machine


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThrowawayCluster]:
    made = ThrowawayCluster()
    yield made
    made.stop()


@pytest.fixture
def url(cluster: ThrowawayCluster) -> Iterator[str]:
    databases = Databases(cluster.url)
    made = databases.create()
    yield made
    databases.drop(made)
    databases.close()


def took(act) -> tuple[object, float]:
    """What came of it, and after how many seconds."""
    began = time.monotonic()
    try:
        result: object = act()
    except DatabaseUnavailable as error:
        result = error
    return result, time.monotonic() - began


@pytest.mark.parametrize("known", [True, False])
def test_a_wait_keeps_its_bound(cluster, url, known):
    """With sessions that are open already, and with none: opening is begun while it stands still."""
    waits = PostgresWaits(url, "test")
    with psycopg.connect(url, autocommit=True) as conn, closing(waits):
        job = enqueue(conn)
        if known:
            assert waits.wait(job, 0.1).state == "pending"
        with frozen(cluster):
            opening = threading.Thread(target=waits.open, daemon=True)
            opening.start()
            opening.join(MARGIN)
            assert not opening.is_alive()
            result, seconds = took(lambda: waits.wait(job, 1))
            assert isinstance(result, DatabaseUnavailable)
            assert seconds < 1 + reads.READ + MARGIN
        finish(conn, job)
        until(lambda: took(lambda: waits.wait(job, 5))[0], 20, "the server answers again")
        assert waits.wait(job, 10).finished


def test_a_wait_that_began_before_tells_what_it_saw(cluster, url, monkeypatch):
    with psycopg.connect(url, autocommit=True) as conn, PostgresWaits(url, "test") as waits:
        job = enqueue(conn)
        looks: list[object] = []
        keep = Last.keep
        monkeypatch.setattr(Last, "keep", lambda last, read: (keep(last, read), looks.append(read)))
        answers: list[tuple[object, float]] = []
        thread = threading.Thread(target=lambda: answers.append(took(lambda: waits.wait(job, 3))))
        thread.start()
        until(lambda: looks, 5, "it has looked once")
        with frozen(cluster):
            thread.join(3 + reads.READ + MARGIN)
        [(answer, _)] = answers
        assert (answer.state, answer.finished) == ("pending", False)


def test_one_that_is_longer_than_the_stillness_is_answered(cluster, url):
    with psycopg.connect(url, autocommit=True) as conn, PostgresWaits(url, "test") as waits:
        job = enqueue(conn)
        answers: list[object] = []
        thread = threading.Thread(target=lambda: answers.append(waits.wait(job, 60)))
        thread.start()
        until(lambda: waits._source.connected, 5, "it waits")
        with frozen(cluster):
            thread.join(reads.READ + 1)
            assert thread.is_alive()
        finish(conn, job)
        thread.join(30)
        assert [answer.state for answer in answers] == ["completed"]


def test_on_an_event_loop_too_and_the_loop_goes_on(cluster, url):
    turns: list[float] = []

    def tick(loop: asyncio.AbstractEventLoop) -> None:
        turns.append(time.monotonic())
        loop.call_later(0.05, tick, loop)

    async def body(job: str) -> None:
        async with PostgresAsyncWaits(url, "test") as waits:
            assert (await waits.wait(job, 0.1)).state == "pending"
            tick(asyncio.get_running_loop())
            with frozen(cluster):
                began = time.monotonic()
                with pytest.raises(DatabaseUnavailable):
                    await waits.wait(job, 1)
                assert time.monotonic() - began < 1 + reads.READ + MARGIN

    with psycopg.connect(url, autocommit=True) as conn:
        asyncio.run(body(enqueue(conn)))
    assert max(b - a for a, b in pairwise(turns)) < 1


def test_closing_does_not_wait_for_it(cluster, url):
    with psycopg.connect(url, autocommit=True) as conn:
        job = enqueue(conn)
        waits = PostgresWaits(url, "test")
        assert waits.wait(job, 0.1).state == "pending"
        with frozen(cluster):
            took(lambda: waits.wait(job, 0))
            _, seconds = took(waits.close)
            assert seconds < 2 + MARGIN  # a second for each of the two threads
