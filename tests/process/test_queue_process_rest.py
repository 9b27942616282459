"""What a queue process that has nothing to do says to the database."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster import FAST, ThrowawayCluster
from tests.support.databases import Databases
from tests.support.processes import Programs
from tests.support.queue import TestQueue
from tests.support.said import LOGGED, position, said
from tests.support.waiting import until

MOST = 2.0  # statements a second beyond the poll


@pytest.fixture
def cluster() -> Iterator[ThrowawayCluster]:
    made = ThrowawayCluster({**FAST, **LOGGED})
    yield made
    made.stop()


@pytest.fixture
def queue(cluster: ThrowawayCluster, short_tmp: Path) -> Iterator[TestQueue]:
    programs = Programs(short_tmp, Databases(cluster.url).create())
    made = TestQueue(programs, programs.environment["DATABASE_URL"])
    yield made
    made.conn.close()
    programs.close()


@pytest.mark.slow
def test_an_idle_process_says_at_most_two_statements_a_second_beyond_its_poll(
    cluster: ThrowawayCluster, queue: TestQueue
) -> None:
    """Its beats are counted. On a busy machine it says less, in more seconds."""
    queue.start()
    queue.final(queue.enqueue("ok"))
    polls, others, seconds = rest(cluster, "t", 30)
    assert polls <= seconds + 2, "one look a second"
    assert others <= MOST * seconds, f"{others} in {seconds:.1f} s"


def test_an_idle_process_with_a_rate_looks_once_a_second(
    cluster: ThrowawayCluster, queue: TestQueue
) -> None:
    """The rate has room; a look asks for its kind and for the others."""
    queue.start(queue="free", WEIRKEEPER_APP="tests.support.excused_app:app")
    polls, _, seconds = rest(cluster, "free", 12)
    assert polls <= 2 * seconds + 4


def rest(cluster: ThrowawayCluster, slot: str, polls: int) -> tuple[int, int, float]:
    """Polls of an idle process, its other statements, and the seconds, once it has polled so often."""
    since = position(cluster.log)
    until(lambda: said(cluster.log, slot, since).polls >= 3, 60, "it is at rest")
    since, begun = position(cluster.log), time.monotonic()
    until(lambda: said(cluster.log, slot, since).polls >= polls, 90, "it has polled so often")
    seconds = time.monotonic() - begun
    return *said(cluster.log, slot, since), seconds
