"""Limits in real queue processes: what really ran, whatever the database says."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from shared.app import load_app
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.queues.catalog import declare
from tests.support.bounds import at_most
from tests.support.limited_app import CAP, RATE
from tests.support.processes import Program
from tests.support.queue import TestQueue, children_of, queue
from tests.support.waiting import until

__all__ = ["queue"]

APP = "tests.support.limited_app:app"


def start(queue: TestQueue, name: str, *slots: str) -> list[Program]:
    return [queue.start("--slot", slot, queue=name, WEIRKEEPER_APP=APP) for slot in slots]


def add(queue: TestQueue, kind: str, number: int, seconds: float, **opts: Any) -> list[str]:
    """Enqueue jobs of the application with limits."""
    declare(queue.conn, load_app(APP))
    args = [{"seconds": seconds}] * number
    return PostgresJobs(queue.conn).enqueue_many(kind, args, EnqueueOpts(**opts))


def entries(queue: TestQueue, what: str = "begin") -> list[dict[str, Any]]:
    """Effects in order of time."""
    if not queue.effects_path.exists():
        return []
    found = [json.loads(line) for line in queue.effects_path.read_text().splitlines()]
    return sorted((e for e in found if e["what"] == what), key=lambda e: float(e["at"]))


def test_two_processes_run_no_more_than_the_cap_of_their_queue(queue: TestQueue) -> None:
    jobs = add(queue, "v.capped", 60, 0.05)
    start(queue, "v", "v-one", "v-two")
    until(lambda: len(entries(queue, "end")) == len(jobs), 60, "all have ended")
    changes = [(e["at"], 1) for e in entries(queue)] + [
        (e["at"], -1) for e in entries(queue, "end")
    ]
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    assert most <= CAP
    assert len({entry["pid"] for entry in entries(queue)}) > 1


def test_places_under_a_cap_of_a_process_that_was_killed_are_free_again(queue: TestQueue) -> None:
    """Only what lives counts: the next job starts in time, though each place was taken."""
    stuck = add(queue, "v.capped", CAP, 600)
    [program] = start(queue, "v", "v-one")
    for job in stuck:
        queue.begun(job)
    for child in children_of(program):
        os.kill(child, signal.SIGKILL)
    program.send(signal.SIGKILL)
    program.wait(30)
    [job] = add(queue, "v.capped", 1, 0.0, priority=1)  # before those that are taken back
    start(queue, "v", "v-two")
    queue.begun(job, timeout=at_most(15, busy=30))


def test_a_rate_is_kept_by_two_processes_and_used(queue: TestQueue) -> None:
    jobs = add(queue, "w.rated", 3 * RATE.n, 0.0)
    start(queue, "w", "w-one", "w-two")
    until(lambda: len(entries(queue, "end")) == len(jobs), 60, "all have ended")
    claimed = sorted(
        attempt["claimed_at"].timestamp() for job in jobs for attempt in queue.attempts(job)
    )
    apart = [later - one for one, later in zip(claimed, claimed[RATE.n :], strict=False)]
    assert min(apart) >= RATE.per
    assert claimed[-1] - claimed[0] < 20 * RATE.per, "a period that has passed is used"


def test_ten_thousand_jobs_of_one_owner_do_not_hold_up_one_of_another(queue: TestQueue) -> None:
    add(queue, "w.turns", 10_000, 0.02, owner_id="ada")
    start(queue, "w", "w-one")
    until(lambda: len(entries(queue)) > 20, 20, "some of them run")
    before = len(entries(queue))
    [other] = add(queue, "w.turns", 1, 0.02, owner_id="eve")
    until(lambda: queue.effects(other), 20, "the other owner's job begins")
    order = [entry["job"] for entry in entries(queue)]
    # Some began between the look and the enqueue; the others were handed to children already.
    assert order.index(other) - before < 30
