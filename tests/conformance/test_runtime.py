"""The part of the contract that needs processes: clauses 11, 12, 25, 26, 30 and 36 to 40.

Postgres with its pool; the memory adapter promises none of it. What can go wrong in each of them is
tried in detail by tests/process.
"""

from __future__ import annotations

import signal
import time

import pytest

from shared.postgres.inspection.inspector import PostgresInspector
from tests.support.bounds import at_most
from tests.support.queue import TestQueue, alive, queue
from tests.support.waiting import pause, until

__all__ = ["queue"]

TAKE_AWAY = """
    with gone as (
      delete from weirkeeper.running where job_id = %s
      returning queue, kind, priority, job_id, attempt, run
    )
    insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run) select * from gone
"""


def test_11_a_timeout_ends_the_attempt_which_is_retried(queue: TestQueue) -> None:
    queue.start()
    job = queue.enqueue("sleep", {"seconds": 60}, timeout=0.5, max_attempts=2)
    last = queue.final(job)
    assert queue.outcomes(job) == ["timeout", "timeout"]
    assert (last["state"], last["attempt"]) == ("discarded", 2)
    assert len(queue.effects(job)) == 2
    assert not queue.effects(job, "end")


def test_12_a_crash_is_one_failed_attempt(queue: TestQueue) -> None:
    queue.start()
    job = queue.enqueue("die", {"times": 1})
    last = queue.final(job)
    assert queue.outcomes(job) == ["crashed", "completed"]
    assert (last["state"], last["attempt"]) == ("completed", 2)


def test_25_stop_waits_for_a_running_job_inside_the_grace(queue: TestQueue) -> None:
    program = queue.start()
    job = queue.enqueue("sleep", {"seconds": 1.5})
    queue.begun(job)
    assert program.terminate(10) == 0
    assert queue.outcomes(job) == ["completed"]
    assert len(queue.effects(job, "end")) == 1


def test_26_a_budget_that_does_not_fit_is_refused(queue: TestQueue) -> None:
    program = queue.start(ready=False, WEIRKEEPER_CHILDREN="t=900")
    assert program.wait(20) == 78
    [said] = [line for line in program.text().splitlines() if line.startswith("weirkeeper worker:")]
    assert "900 children" in said
    assert queue.count("process") == 0


def test_30_cancel_of_a_running_job_stops_it(queue: TestQueue) -> None:
    queue.start()
    inspector = PostgresInspector(queue.conn)
    sibling = queue.enqueue("sleep", {"seconds": 1.5})
    job = queue.enqueue("sleep", {"seconds": 60})
    pid = queue.begun(job)["pid"]
    queue.begun(sibling)
    began = time.monotonic()
    assert inspector.cancel(job) == "running"
    last = queue.final(job)
    assert time.monotonic() - began < at_most(5, busy=20), "of the minute that it would have slept"
    assert (last["state"], last["attempt"]) == ("cancelled", 0)
    assert not queue.effects(job, "end")
    assert queue.final(sibling)["outcome"] == "completed"
    assert queue.count("running") == 0
    stuck = queue.enqueue("stuck", timeout=60)
    pid = queue.begun(stuck)["pid"]
    inspector.cancel(stuck)
    assert queue.final(stuck)["state"] == "cancelled"
    assert not alive(pid)


@pytest.mark.parametrize("seconds", [3, pytest.param(18, marks=pytest.mark.slow)])
def test_36_no_attempt_of_a_living_owner_is_ever_rescued(queue: TestQueue, seconds: int) -> None:
    """However long it takes, and though its owner stands still for a while."""
    owner = queue.start()
    job = queue.enqueue("sleep", {"seconds": seconds}, timeout=60)
    queue.begun(job)
    queue.start("--slot", "other")
    owner.send(signal.SIGSTOP)
    pause(min(seconds, 4), "the owner does not beat, but its lease holds")
    owner.send(signal.SIGCONT)
    queue.final(job, timeout=30)
    assert queue.outcomes(job) == ["completed"]
    assert len(queue.effects(job)) == 1


def test_37_a_fence_lost_is_harmless(queue: TestQueue) -> None:
    """Two processes run the same job, since somebody took it from the first: one end counts."""
    queue.start(WEIRKEEPER_CHILDREN="t=1")
    # It learns that these are long, and claims none while its child is busy: it would find that it
    # runs the one already, and go on with it under the new claim.
    queue.final(queue.enqueue("sleep", {"seconds": 1}))
    job = queue.enqueue("sleep", {"seconds": 3})
    queue.begun(job)
    until(lambda: queue.where(job) == ["running"], 5, "it runs")
    queue.start("--slot", "other", WEIRKEEPER_CHILDREN="t=1")
    queue.conn.execute(TAKE_AWAY, (job,))
    queue.conn.execute("select weirkeeper.wake_queue('t')")
    queue.begun(job, times=2)
    last = queue.final(job)
    assert (last["run"], queue.outcomes(job)) == (2, ["completed"])
    assert len(queue.effects(job, "end")) == 2
    assert queue.where(job) == []
    others = [queue.enqueue("sleep", {"seconds": 0.5}) for _ in range(4)]
    assert {queue.final(other)["attempt"] for other in others} == {1}


def test_38_two_processes_of_one_queue_never_run_one_job_twice(queue: TestQueue) -> None:
    queue.start()
    queue.start("--slot", "other")
    jobs = [queue.enqueue("ok") for _ in range(300)]
    for job in jobs:
        queue.final(job)
    assert {len(queue.effects(job)) for job in jobs} == {1}
    assert all(queue.outcomes(job) == ["completed"] for job in jobs)


def test_39_drain_gives_back_interrupts_and_requeues(queue: TestQueue) -> None:
    program = queue.start(
        WEIRKEEPER_CHILDREN="t=1", WEIRKEEPER_DRAIN_SECONDS="0.5", WEIRKEEPER_GRACE_SECONDS="0.5"
    )
    for _ in range(10):
        queue.final(queue.enqueue("noop"))  # short jobs are claimed ahead
    running = queue.enqueue("sleep", {"seconds": 60})
    queue.begun(running)
    waiting = [queue.enqueue("ok") for _ in range(20)]
    began = time.monotonic()
    assert program.terminate() == 0
    assert time.monotonic() - began < at_most(4, busy=15), "of the minute that it would have slept"
    assert queue.count("running") == 0
    [attempt] = queue.attempts(running)
    assert (attempt["outcome"], attempt["state"], attempt["attempt"]) == (
        "interrupted",
        "pending",
        0,
    )
    assert {tuple(queue.where(job)) for job in [running, *waiting]} == {("ready",)}
    assert not any(queue.effects(job) for job in waiting)
    queue.start()
    assert {queue.final(job)["attempt"] for job in waiting} == {1}
    queue.begun(running, times=2)
    PostgresInspector(queue.conn).cancel(running)
    assert queue.final(running)["state"] == "cancelled"


def test_40_a_job_that_kills_its_children_ends_and_a_kind_that_does_is_set_aside(
    queue: TestQueue,
) -> None:
    """One job: by its attempts. Several of a kind: it is paused, and runs when somebody says so."""
    program = queue.start()
    deadly = queue.enqueue("die")
    others = [queue.enqueue("ok") for _ in range(20)]
    last = queue.final(deadly)
    assert (last["state"], last["attempt"]) == ("discarded", 3)
    assert queue.outcomes(deadly) == ["crashed"] * 3
    assert {queue.final(job)["attempt"] for job in others} == {1}

    mended = queue.programs.home / "mended"
    kind = [queue.enqueue("die", {"unless": str(mended)}, max_attempts=50) for _ in range(4)]
    inspector = PostgresInspector(queue.conn)
    said = until(lambda: quarantined(queue), 30, "the kind is quarantined")
    assert "children in a row died" in said
    until(lambda: all(queue.where(job) != ["running"] for job in kind), 10, "none of it runs")
    begun = [len(queue.effects(job)) for job in kind]
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    assert [len(queue.effects(job)) for job in kind] == begun
    mended.touch()
    inspector.resume(kind="t.die")
    assert {queue.final(job, 30)["outcome"] for job in kind} == {"completed"}
    assert program.running()


def quarantined(queue: TestQueue) -> str | None:
    row = queue.conn.execute("select quarantine from weirkeeper.paused").fetchone()
    return row and row[0]
