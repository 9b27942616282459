"""Who takes over from whom: killed, forgotten and frozen processes, and what they held."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.support.queue import TestQueue, alive, children_of, queue, server_of
from tests.support.waiting import pause, until

__all__ = ["queue"]

LEASE = 15.0


def marked(queue: TestQueue, jobs: list[str]) -> bool:
    row = queue.conn.execute(
        "select count(*) from weirkeeper.running"
        " where job_id = any (%s::bigint[]) and started_at is not null",
        ([int(job) for job in jobs],),
    ).fetchone()
    return row == (len(jobs),)


def test_what_a_killed_process_held_is_retried_well_before_its_lease_is_over(
    queue: TestQueue,
) -> None:
    """On one host its end is known; the time itself is measured by script/bench kills."""
    program = queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 30}) for _ in range(3)]
    for job in jobs:
        queue.begun(job, timeout=30)
    until(lambda: marked(queue, jobs), 30, "the database knows that they started")
    program.send(signal.SIGKILL)
    program.wait(30)
    queue.start()
    ready = time.monotonic()
    again = [queue.begun(job, times=2, timeout=30)["at"] for job in jobs]
    assert max(again) - ready < LEASE / 2
    assert all(queue.outcomes(job) == ["rescued"] for job in jobs)


@pytest.mark.slow
def test_a_killed_process_whose_row_is_gone_is_as_dead(queue: TestQueue) -> None:
    program = queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 30}) for _ in range(3)]
    for job in jobs:
        queue.begun(job, timeout=30)
    until(lambda: marked(queue, jobs), 30, "the database knows that they started")
    program.send(signal.SIGKILL)
    program.wait(30)
    queue.conn.execute("delete from weirkeeper.process")
    queue.start()
    for job in jobs:
        queue.begun(job, times=2, timeout=30)
    assert all(queue.outcomes(job) == ["rescued"] for job in jobs)


def test_a_concurrency_key_is_free_again_when_its_holder_was_killed_with_its_parent(
    queue: TestQueue,
) -> None:
    program = queue.start()
    holder = queue.enqueue("sleep", {"seconds": 60}, concurrency_key="one", max_attempts=1)
    child = queue.begun(holder, timeout=30)["pid"]
    until(lambda: marked(queue, [holder]), 30, "the database knows that it started")
    waiting = queue.enqueue("ok", concurrency_key="one")
    until(lambda: queue.where(waiting) == ["parked"], 30, "it waits for the key")
    for pid in (child, program.pid):
        os.kill(pid, signal.SIGKILL)
    program.wait(30)
    queue.start()
    assert queue.final(waiting, timeout=LEASE)["outcome"] == "completed"
    assert queue.final(holder)["state"] == "discarded"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_eleven_frozen_jobs_run_elsewhere_and_their_late_ends_change_nothing(
    queue: TestQueue,
) -> None:
    frozen = queue.start(WEIRKEEPER_CHILDREN="t=11")
    jobs = [queue.enqueue("sleep", {"seconds": 3}) for _ in range(11)]
    for job in jobs:
        queue.begun(job, timeout=30)
    until(lambda: marked(queue, jobs), 30, "the database knows that they started")
    pids = [frozen.pid, server_of(frozen), *children_of(frozen)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        queue.start("--slot", "t-2", WEIRKEEPER_CHILDREN="t=4")
        most = 0
        deadline = time.monotonic() + 3 * LEASE
        while time.monotonic() < deadline:
            most = max(most, running(queue))
            pause(0.1, "three leases pass while the first process is frozen")
        last = [queue.final(job, timeout=60) for job in jobs]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    assert frozen.wait(30) == 1
    assert most <= 11, "never more at once than the frozen held"
    assert [queue.attempts(job)[-1] for job in jobs] == last
    assert all(queue.outcomes(job) == ["rescued", "completed"] for job in jobs)
    until(lambda: not any(map(alive, pids)), 10, "its children are gone with it")


def running(queue: TestQueue) -> int:
    return queue.count("running")
