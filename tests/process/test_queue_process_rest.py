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


def test_an_idle_process_says_at_most_two_statements_a_second_beyond_its_poll(
    cluster: ThrowawayCluster, short_tmp: Path
) -> None:
    """Its beats are counted. On a busy machine it says less, in more seconds."""
    programs = Programs(short_tmp, Databases(cluster.url).create())
    queue = TestQueue(programs, programs.environment["DATABASE_URL"])
    try:
        queue.start()
        queue.final(queue.enqueue("ok"))
        since = position(cluster.log)
        until(lambda: said(cluster.log, "t", since).polls >= 3, 60, "it is at rest")
        since, begun = position(cluster.log), time.monotonic()
        until(lambda: said(cluster.log, "t", since).polls >= 30, 90, "it has polled 30 times")
        seconds = time.monotonic() - begun
        polls, others = said(cluster.log, "t", since)
    finally:
        queue.conn.close()
        programs.close()
    assert polls <= seconds + 2, "one look a second"
    assert others <= MOST * seconds, f"{others} in {seconds:.1f} s"
