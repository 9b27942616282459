"""Enqueue and wait at once, while a real queue process ends the jobs: none is missed."""

from __future__ import annotations

import time

import pytest

from shared.postgres.application.waits import PostgresWaits
from tests.support.bounds import at_most
from tests.support.queue import TestQueue, queue

__all__ = ["queue"]


@pytest.mark.parametrize(
    "races", [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_no_job_that_ends_while_its_wait_begins_is_missed(
    queue: TestQueue, monkeypatch: pytest.MonkeyPatch, races: int
) -> None:
    """The slow poll is out of the way: who misses the notice looks again when its bound passes."""
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    queue.start()
    seconds: list[float] = []
    with PostgresWaits(queue.url, "test") as waits:
        for _ in range(races):
            job = queue.enqueue("noop", awaited=True)
            begun = time.monotonic()
            answer = waits.wait(job, 30)
            seconds.append(time.monotonic() - begun)
            assert (answer.state, answer.finished) == ("completed", True)
            assert seconds[-1] < 25, "it was not found at its bound alone"
    assert sorted(seconds)[races * 99 // 100] < at_most(0.25, busy=5), "of a hundred, 99"
