"""A queue process and what was said of a job when it was enqueued: expiry, uniqueness, wide ids."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.jobs.options import EnqueueOpts, Unique
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.application.waits import PostgresWaits
from tests.support.queue import TestQueue, queue
from tests.support.waiting import until

__all__ = ["queue"]


def soon(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def test_a_job_that_could_not_start_in_time_is_discarded_at_its_moment_with_its_notice(
    queue: TestQueue,
) -> None:
    queue.start()
    long = [queue.enqueue("sleep", {"seconds": 5}) for _ in range(4)]  # every child is busy
    for job in long:
        queue.begun(job)
    moment = soon(1.0)
    late = queue.enqueue("ok", expires_at=moment)
    waits = PostgresWaits(queue.url, "test")
    try:
        answer = waits.wait(late, 4)
    finally:
        waits.close()
    assert (answer.state, answer.finished) == ("discarded", True)
    last = queue.final(late)
    assert (last["outcome"], last["cause"], last["attempt"]) == ("discarded", "expired", 0)
    assert timedelta(0) <= last["finished_at"] - moment < timedelta(seconds=2)
    assert queue.effects(late) == []
    assert {queue.final(job)["outcome"] for job in long} == {"completed"}


def test_what_expired_before_the_start_is_not_run_and_the_rest_is(queue: TestQueue) -> None:
    old = PostgresJobs(queue.conn).enqueue_many(
        "t.ok", [{}] * 200, EnqueueOpts(expires_at=soon(-1))
    )
    good = [queue.enqueue("ok", expires_at=soon(60)) for _ in range(20)]
    queue.start()
    assert {queue.final(job)["outcome"] for job in good} == {"completed"}
    assert {queue.final(job)["cause"] for job in old} == {"expired"}
    assert all(queue.effects(job) == [] for job in old)
    assert queue.count("attempt") == 220


def test_a_handlers_discard_releases_a_unique_job_and_its_success_does_not(
    queue: TestQueue,
) -> None:
    queue.start()

    def add(kind: str, **args: object) -> str:
        return queue.enqueue(kind, args, unique=Unique())

    bad = add("answer", answer="discard")
    assert queue.final(bad)["state"] == "discarded"
    assert add("answer", answer="discard") != bad
    good = add("ok", n=1)
    assert queue.final(good)["state"] == "completed"
    assert add("ok", n=1) == good


@pytest.mark.parametrize("start", [2**31 - 48, 2**53 + 1])
def test_jobs_run_whatever_number_they_have(queue: TestQueue, start: int) -> None:
    for sequence in ("job_id_seq", "ready_seq", "process_epoch_seq", "event_pending_seq"):
        queue.conn.execute(f"alter sequence weirkeeper.{sequence} restart with {start}")
    queue.start()
    jobs = [queue.enqueue("ok") for _ in range(50)]
    jobs += PostgresJobs(queue.conn).enqueue_many("t.ok", [{}] * 50)
    assert jobs == [str(n) for n in range(start, start + 100)]
    until(lambda: queue.count("attempt") == 100, 20, "all have run")
    assert {queue.final(job)["outcome"] for job in jobs} == {"completed"}
    assert all(len(queue.effects(job)) == 1 for job in jobs)


def test_a_number_that_no_float_holds_fails_and_is_retried_like_any_other(
    queue: TestQueue,
) -> None:
    queue.start()
    row = queue.conn.execute(
        """select weirkeeper.enqueue('t.fail', '{"times": 1, "x": 1e400}')::text"""
    ).fetchone()
    assert row is not None
    queue.final(row[0])
    assert queue.outcomes(row[0]) == ["failed", "completed"]
