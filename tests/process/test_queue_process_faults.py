"""A queue process and its faults: what dies, hangs or overruns, and what becomes of the jobs."""

from __future__ import annotations

import os
import signal
import time

from tests.support.bounds import at_most
from tests.support.queue import TestQueue, alive, children_of, queue, server_of
from tests.support.waiting import until

__all__ = ["queue"]

LEASE = 15.0  # seconds after which another host would take the jobs over


def test_a_job_stuck_in_c_is_killed_and_its_siblings_finish(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_GRACE_SECONDS="0.5")
    siblings = [queue.enqueue("sleep", {"seconds": 1.5}) for _ in range(3)]
    stuck = queue.enqueue("stuck")
    last = queue.final(stuck)
    assert (last["outcome"], last["state"], last["cause"]) == ("timeout", "discarded", "timeout")
    assert " in stuck" in last["evidence"]["stacks"]
    seconds = (last["finished_at"] - last["started_at"]).total_seconds()
    assert 1.0 <= seconds < at_most(2, busy=15)  # to the tenth: tests/process/test_pool.py
    assert [queue.final(job)["attempt"] for job in siblings] == [1, 1, 1]
    assert not alive(queue.effects(stuck)[0]["pid"])
    until(lambda: len(children_of(program)) == 4, 20, "its slot is refilled")


def test_what_a_job_started_ends_with_it(queue: TestQueue) -> None:
    queue.start(WEIRKEEPER_GRACE_SECONDS="0.2")
    job = queue.enqueue("fork")
    programs = queue.begun(job)["programs"]
    assert queue.final(job)["outcome"] == "timeout"
    until(lambda: not any(map(alive, programs)), 20, "both programs are gone")


def test_a_killed_child_is_a_crash_and_its_job_runs_again(queue: TestQueue) -> None:
    queue.start()
    job = queue.enqueue("die", {"times": 1})
    assert queue.final(job)["outcome"] == "completed"
    crash = queue.attempts(job)[0]
    assert (crash["outcome"], crash["cause"], crash["state"]) == ("crashed", "SIGKILL", "retryable")
    assert crash["error"] == "child died by signal 9 (SIGKILL)"
    assert crash["evidence"] == {"signal": "SIGKILL"}


def test_a_job_that_kills_its_child_is_discarded_and_the_others_go_on(queue: TestQueue) -> None:
    program = queue.start()
    deadly = queue.enqueue("die")
    jobs = [queue.enqueue("ok") for _ in range(100)]
    last = queue.final(deadly)
    assert (last["state"], last["attempt"]) == ("discarded", 3)
    assert len(queue.effects(deadly)) == 3
    assert {queue.final(job)["attempt"] for job in jobs} == {1}
    assert program.running()


def test_all_children_killed_at_once_are_replaced(queue: TestQueue) -> None:
    program = queue.start()
    before = children_of(program)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    until(lambda: len(children_of(program) - before) == 4, 20, "four new children")


def test_a_killed_fork_server_costs_no_attempt(queue: TestQueue) -> None:
    program = queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 1}) for _ in range(3)]
    for job in jobs:
        queue.begun(job)
    before = children_of(program)
    os.kill(server_of(program), signal.SIGKILL)
    assert [queue.final(job)["attempt"] for job in jobs] == [1, 1, 1]
    assert all(queue.outcomes(job) == ["interrupted", "completed"] for job in jobs)
    assert {a["cause"] for job in jobs for a in queue.attempts(job)[:1]} == {"pool_lost"}
    assert not any(map(alive, before))


def test_a_killed_parent_leaves_nothing_and_its_successor_takes_over(queue: TestQueue) -> None:
    program = queue.start()
    job = queue.enqueue("sleep", {"seconds": 1.5})
    programs = queue.enqueue("fork", timeout=60)
    queue.begun(job)
    started = queue.begun(programs)["programs"]
    until(lambda: _marked(queue, job), 20, "the database knows that the job started")
    left = [server_of(program), *children_of(program)]
    program.send(signal.SIGKILL)
    program.wait(30)
    until(lambda: not any(map(alive, left)), 20, "fork server and children are gone")
    begun = time.monotonic()
    queue.start()
    queue.begun(job, times=2)
    assert time.monotonic() - begun < LEASE  # how fast it is: script/bench kills
    until(lambda: not any(map(alive, started)), 20, "what its handlers started is gone")
    assert queue.final(job)["attempt"] == 2
    assert queue.outcomes(job) == ["rescued", "completed"]
    assert len(queue.effects(job, "end")) == 1


def test_a_parent_killed_while_handlers_are_imported_leaves_no_fork_server(
    queue: TestQueue,
) -> None:
    program = queue.start(ready=False, WEIRKEEPER_APP="tests.support.slow_app:app")
    until(lambda: "importing" in program.text(), 20, "the fork server imports handlers")
    program.send(signal.SIGKILL)
    program.wait(30)
    until(lambda: not queue.programs.living(), 20, "the fork server is gone")


def _marked(queue: TestQueue, job: str) -> bool:
    row = queue.conn.execute(
        "select started_at from weirkeeper.running where job_id = %s", (job,)
    ).fetchone()
    return row is not None and row[0] is not None


def test_a_fork_server_that_hangs_is_replaced(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_CHILDREN="t=1")
    frozen = server_of(program)
    os.kill(frozen, signal.SIGSTOP)
    os.kill(next(iter(children_of(program))), signal.SIGKILL)
    until(lambda: not alive(frozen), 30, "the frozen fork server is killed")
    assert queue.final(queue.enqueue("ok"), timeout=30)["outcome"] == "completed"
    assert program.running()


def test_two_processes_of_one_queue_share_its_jobs(queue: TestQueue) -> None:
    first, second = queue.start(), queue.start("--slot", "t-2")
    jobs = [queue.enqueue("sleep", {"seconds": 0.05}) for _ in range(60)]
    assert {queue.final(job)["outcome"] for job in jobs} == {"completed"}
    assert all(len(queue.effects(job)) == 1 for job in jobs)
    pids = {queue.effects(job)[0]["pid"] for job in jobs}
    assert pids & children_of(first)
    assert pids & children_of(second)


def test_a_slot_that_is_taken_is_refused(queue: TestQueue) -> None:
    queue.start()
    second = queue.start(ready=False)
    assert second.wait(20) == 78
    assert "--slot" in second.text()


def test_a_frozen_process_loses_its_jobs_and_writes_nothing_when_it_thaws(queue: TestQueue) -> None:
    frozen = queue.start()
    job = queue.enqueue("sleep", {"seconds": 1.5})
    queue.begun(job)
    until(lambda: _marked(queue, job), 20, "the database knows that the job started")
    pids = [frozen.pid, server_of(frozen), *children_of(frozen)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    queue.start("--slot", "t-2")
    queue.begun(job, times=2, timeout=25)
    last = queue.final(job)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    assert frozen.wait(10) == 1
    assert queue.attempts(job)[-1] == last
    assert queue.outcomes(job) == ["rescued", "completed"]


def test_what_a_handler_printed_is_not_lost_with_its_child(queue: TestQueue) -> None:
    program = queue.start()
    job = queue.enqueue("die", {"signal": 9, "words": "I was at the third heron"}, max_attempts=1)
    assert queue.final(job)["outcome"] == "crashed"
    until(lambda: "I was at the third heron" in program.text(), 20, "its words are in the log")
