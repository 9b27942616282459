"""Cancelling what runs, and pausing what would run, in real queue processes."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from shared.jobs.inspect import JobFilter
from shared.postgres.driver.connect import connect
from shared.postgres.inspection.inspector import PostgresInspector
from tests.support.bounds import at_most
from tests.support.queue import TestQueue, alive, children_of
from tests.support.steps import notices_fixture  # noqa: F401
from tests.support.waiting import pause, until


@pytest.fixture(name="queue")
def queue_fixture(programs, database_url) -> Iterator[TestQueue]:
    made = TestQueue(programs, database_url)
    yield made
    made.conn.close()


@pytest.fixture
def inspector(database_url) -> Iterator[PostgresInspector]:
    with connect(database_url, "by hand") as conn:
        yield PostgresInspector(conn)


def test_a_running_job_is_stopped_and_then_final(queue, inspector, notices):
    queue.start()
    job = queue.enqueue("sleep", {"seconds": 60})
    child = queue.begun(job)["pid"]
    asked = time.monotonic()
    assert inspector.cancel(job) == "running"
    end = queue.final(job, 40)
    took = time.monotonic() - asked
    assert not alive(child), "final only when its child is gone"
    assert took < at_most(1.5, busy=20), "of the minute that it would have slept"
    assert (end["outcome"], end["state"], end["cause"]) == ("cancelled", "cancelled", "cancelled")
    assert "in sleep" in end["evidence"]["stacks"], "where it stood is kept"
    assert queue.effects(job, "end") == []
    until(lambda: notices.heard() == [job], 20, "its end was told, once")
    other = queue.enqueue("ok")
    assert queue.final(other)["state"] == "completed", "the child was replaced"


def test_a_job_that_does_not_listen_is_killed_after_the_grace(queue, inspector):
    queue.start(WEIRKEEPER_GRACE_SECONDS="0.5")
    job = queue.enqueue("stuck", timeout=60)
    child = queue.begun(job)["pid"]
    inspector.cancel(job)
    end = queue.final(job, 6)
    assert (end["state"], end["cause"]) == ("cancelled", "cancelled")
    assert not alive(child)


def test_what_a_job_started_goes_with_it(queue, inspector):
    queue.start()
    job = queue.enqueue("fork", timeout=60)
    programs = queue.begun(job)["programs"]
    inspector.cancel(job)
    assert queue.final(job, 6)["state"] == "cancelled"
    until(lambda: not any(map(alive, programs)), 20, "what the job started is gone")


def test_siblings_are_untouched(queue, inspector):
    program = queue.start()
    doomed, other = (queue.enqueue("sleep", {"seconds": s}) for s in (60, 2))
    queue.begun(doomed)
    child = queue.begun(other)["pid"]
    inspector.cancel(doomed)
    assert queue.final(doomed, 5)["state"] == "cancelled"
    assert child in children_of(program)
    assert queue.final(other)["outcome"] == "completed"


def test_a_cancel_whose_notice_is_lost_is_found_within_seconds(queue, inspector):
    queue.start()
    job = queue.enqueue("sleep", {"seconds": 60})
    queue.begun(job)
    queue.conn.execute(
        "update weirkeeper.running set cancel_requested_at = now() where job_id = %s", (job,)
    )
    assert queue.final(job, 4)["state"] == "cancelled"


def test_a_cancel_during_a_drain_is_final_before_the_process_ends(queue, inspector):
    program = queue.start(WEIRKEEPER_DRAIN_SECONDS="20")
    job = queue.enqueue("sleep", {"seconds": 60})
    queue.begun(job)
    program.send(15)
    until(lambda: "draining" in program.text(), 20, "it drains")
    inspector.cancel(job)
    assert program.wait(8) == 0, program.text()
    assert queue.final(job, 1)["state"] == "cancelled"
    assert queue.where(job) == []


def test_jobs_of_a_paused_kind_start_in_no_process_and_at_once_when_it_resumes(queue, inspector):
    first, second = queue.start(), queue.start("--slot", "t-two")
    warm = [queue.enqueue("ok") for _ in range(8)]
    for job in warm:
        queue.final(job)
    inspector.pause(kind="t.ok")
    held = [queue.enqueue("ok") for _ in range(8)]
    free = queue.enqueue("sleep", {"seconds": 0})
    assert queue.final(free)["state"] == "completed", "other kinds of the queue go on"
    pause(1.5, "a process that had not heard of the pause would have claimed by now")
    assert {tuple(queue.where(job)) for job in held} == {("ready",)}
    assert inspector.explain(held[0]).waits_for == "resume"
    resumed = time.monotonic()
    inspector.resume(kind="t.ok")
    for job in held:
        assert queue.final(job)["state"] == "completed"
    assert time.monotonic() - resumed < at_most(1, busy=10)
    assert first.running()
    assert second.running()


# ── races ─────────────────────────────────────────────────────────────────────────────────────────


def race(queue, inspector, number: int, rng) -> list[str]:
    """Enqueue jobs of some milliseconds; cancel each 0–50 ms later, while it is wherever it is."""
    jobs = []
    for _ in range(number):
        job = queue.enqueue("sleep", {"seconds": rng.uniform(0, 0.01)})
        jobs.append(job)
        pause(rng.uniform(0, 0.05) * rng.choice((0, 0.1, 1)), "a moment around claim and finish")
        inspector.cancel(job)
    return jobs


def check_agreement(queue, inspector, notices, jobs: list[str]) -> Counter[str]:
    """What the database says is what happened; each job became final once, and was told once."""
    for job in jobs:
        queue.final(job, 30)
    assert notices.heard() == sorted(jobs, key=int)
    found: Counter[str] = Counter()
    lines = queue.effects_path.read_text() if queue.effects_path.exists() else ""
    effects = Counter()
    for line in lines.splitlines():
        entry = json.loads(line)
        effects[entry["job"], entry["what"]] += 1
    for job in jobs:
        [attempt] = queue.attempts(job)
        begun, ended = effects[job, "begin"], effects[job, "end"]
        assert queue.where(job) == []
        assert begun <= 1, f"job {job} ran twice"
        if attempt["state"] == "completed":
            assert (begun, ended) == (1, 1), job
            found["completed"] += 1
        else:
            assert attempt["state"] == "cancelled", attempt
            never_ran = attempt["started_at"] is None
            assert not (never_ran and begun), f"job {job} was cancelled while it waited, and ran"
            found["cancelled waiting" if never_ran else "cancelled running"] += 1
    return found


@pytest.mark.parametrize(
    "number", [150, pytest.param(2000, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_cancels_around_claim_and_finish(queue, inspector, notices, number):
    seed = int.from_bytes(os.urandom(4))
    queue.start()
    jobs = race(queue, inspector, number, random.Random(seed))
    found = check_agreement(queue, inspector, notices, jobs)
    print(f"seed {seed}: {dict(found)}")
    assert min(found["completed"], found["cancelled waiting"]) > 0, (seed, found)


def test_many_running_and_waiting_jobs_are_cancelled_together(queue, inspector, notices):
    queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 60}) for _ in range(60)]
    for job in jobs[:4]:
        queue.begun(job)
    assert inspector.cancel_many(JobFilter(kind="t.sleep")) == 60
    found = check_agreement(queue, inspector, notices, jobs)
    assert found["cancelled running"] == 4
