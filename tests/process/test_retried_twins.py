"""A unique job that its handler discarded is retried while its twin waits: a conflict, and no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.errors import Conflict
from shared.jobs.port import JobFilter, Unique
from shared.postgres.inspection.inspector import PostgresInspector
from tests.support.processes import Program
from tests.support.queue import TestQueue, queue
from tests.support.waiting import until

__all__ = ["queue"]

LATER = datetime.now(UTC) + timedelta(hours=1)


def discards(queue: TestQueue, n: int, run_at: datetime | None = None) -> str:
    """A unique job whose handler discards it in its first run, and completes in its second."""
    args = {"answer": "discard", "n": n}
    return queue.enqueue("answer", args, unique=Unique(), run_at=run_at)


def discarded(queue: TestQueue, *numbers: int) -> list[str]:
    jobs = [discards(queue, n) for n in numbers]
    for job in jobs:
        assert queue.final(job)["state"] == "discarded"
        assert queue.outcomes(job) == ["discarded"]
    return jobs


def goes_on(queue: TestQueue, program: Program) -> None:
    """Jobs run, in the process that was there before, and nothing failed in it."""
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    assert program.running()
    assert "the database fails" not in program.text()


def test_the_others_of_its_batch_and_the_twin_run(queue: TestQueue) -> None:
    program = queue.start()
    inspector = PostgresInspector(queue.conn)
    first, *others = discarded(queue, 0, 1, 2, 3)
    inspector.pause(kind="t.answer")
    twin = discards(queue, 0)
    assert (twin != first, queue.where(twin)) == (True, ["ready"])

    with pytest.raises(Conflict, match=f"got job {twin}") as refused:
        inspector.retry(first)
    assert refused.value.job_id == twin
    assert inspector.retry_many(JobFilter(kind="t.answer", state="discarded")) == len(others)
    assert (inspector.get(first).state, queue.where(first)) == ("discarded", [])
    assert queue.where(twin) == ["ready"]

    inspector.resume(kind="t.answer")
    for job in others:
        until(lambda j=job: len(queue.attempts(j)) == 2, 40, "it has run once more")
        assert queue.final(job)["outcome"] == "completed"
    assert queue.final(twin)["state"] == "discarded"
    assert [len(queue.effects(job)) for job in (first, *others, twin)] == [1, 2, 2, 2, 1]
    assert inspector.retry(first) == "retryable", "the twin is out of the way"
    until(lambda: inspector.get(first).state == "completed", 40, "it has run once more")
    goes_on(queue, program)


def test_a_batch_with_the_twin_becomes_due(queue: TestQueue) -> None:
    program = queue.start()
    inspector = PostgresInspector(queue.conn)
    [first] = discarded(queue, 0)
    twin, *others = [discards(queue, n, run_at=LATER) for n in range(4)]
    assert {tuple(queue.where(job)) for job in (twin, *others)} == {("scheduled",)}

    with pytest.raises(Conflict, match=f"got job {twin}") as refused:
        inspector.retry(first)
    assert refused.value.job_id == twin
    assert queue.where(twin) == ["scheduled"]

    queue.conn.execute("update weirkeeper.scheduled set run_at = now()")
    for job in (twin, *others):
        assert queue.final(job)["state"] == "discarded"
    assert [len(queue.effects(job)) for job in (first, twin, *others)] == [1] * 5
    assert inspector.get(first).state == "discarded"
    goes_on(queue, program)
