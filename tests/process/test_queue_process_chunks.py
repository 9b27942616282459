"""Short jobs that travel together, through the whole process: stops, cancels, kills."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter

import pytest

from shared.postgres.queues.controls import cancel
from tests.support.queue import TestQueue, children_of, queue
from tests.support.waiting import pause, until

__all__ = ["queue"]


def _measured(queue: TestQueue, kind: str = "noop", jobs: int = 150) -> None:
    """Let the process see how short these jobs are."""
    last = [queue.enqueue(kind) for _ in range(jobs)][-1]
    queue.final(last, 60)


def _many(queue: TestQueue, kind: str, jobs: int) -> set[int]:
    rows = queue.conn.execute(
        "select unnest(weirkeeper.enqueue_many(%s, array_fill('{}'::jsonb, array[%s])))",
        (f"t.{kind}", jobs),
    )
    return {int(str(row[0])) for row in rows}


def _log(queue: TestQueue, jobs: set[int]) -> dict[int, list[str]]:
    rows = queue.conn.execute(
        "select job_id, array_agg(outcome order by run) from weirkeeper.attempt"
        " where job_id = any(%s) group by job_id",
        (list(jobs),),
    )
    return {row[0]: row[1] for row in rows}


def _ended(queue: TestQueue) -> bool:
    return not (queue.count("ready") or queue.count("running") or queue.count("scheduled"))


def test_every_job_of_a_full_queue_runs_once_and_has_one_row(queue: TestQueue) -> None:
    queue.start(WEIRKEEPER_CHILDREN="t=2")
    _measured(queue)
    jobs = _many(queue, "noop", 3000)
    until(lambda: _ended(queue), 60, "all have ended")
    log = _log(queue, jobs)
    assert set(log) == jobs
    assert all(outcomes == ["completed"] for outcomes in log.values())
    strange = queue.conn.execute(
        "select count(*) from weirkeeper.attempt"
        " where outcome = 'completed' and not claimed_at <= started_at + interval '1 ms'"
        " or started_at > finished_at"
    ).fetchone()
    assert strange == (0,), "a job starts after its claim and before its end"


@pytest.mark.slow
def test_each_of_5000_jobs_happens_once_whatever_children_are_killed(queue: TestQueue) -> None:
    chance = random.Random(7)
    program = queue.start(WEIRKEEPER_CHILDREN="t=4")
    _measured(queue, "ok", 50)
    jobs = _many(queue, "ok", 5000)
    kills = 0
    while kills < 20 and not _ended(queue):
        pause(0.05, "let jobs flow between two kills")
        victims = sorted(children_of(program))
        if victims:
            os.kill(chance.choice(victims), signal.SIGKILL)
            kills += 1
    until(lambda: _ended(queue), 120, "all have ended")
    log = _log(queue, jobs)
    assert set(log) == jobs
    assert all(outcomes[-1] == "completed" for outcomes in log.values())
    assert {outcome for outcomes in log.values() for outcome in outcomes[:-1]} <= {"crashed"}
    assert sum(len(outcomes) - 1 for outcomes in log.values()) <= kills
    lines = queue.effects_path.read_text().splitlines()
    begun = Counter(
        int(line.split('"job": "')[1].split('"')[0]) for line in lines if "begin" in line
    )
    for job, outcomes in log.items():
        assert 1 <= begun[job] <= len(outcomes), (job, outcomes)


def test_a_stop_gives_back_what_no_child_has_begun(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_CHILDREN="t=2")
    _measured(queue, "ok", 60)
    jobs = _many(queue, "ok", 2000)
    until(lambda: _log(queue, jobs), 20, "some have ended")
    assert program.terminate(15) == 0
    log = _log(queue, jobs)
    assert all(outcomes == ["completed"] for outcomes in log.values()), "none was interrupted"
    assert queue.count("running") == 0
    assert queue.count("ready") == len(jobs) - len(log)
    row = queue.conn.execute("select jobs from weirkeeper.drain").fetchone()
    assert row is not None
    assert row[0]["interrupted"] == 0
    queue.start(WEIRKEEPER_CHILDREN="t=2")
    until(lambda: _ended(queue), 60, "the others have ended")
    assert all(outcomes == ["completed"] for outcomes in _log(queue, jobs).values())
    assert len(_log(queue, jobs)) == len(jobs)


def test_a_cancelled_job_among_short_ones_never_runs_or_runs_whole(queue: TestQueue) -> None:
    queue.start(WEIRKEEPER_CHILDREN="t=1")
    _measured(queue, "ok", 60)
    hanging = queue.enqueue("sleep", {"seconds": 3})
    queue.begun(hanging)
    jobs = sorted(_many(queue, "ok", 100))
    wanted = jobs[::10]
    cancel(queue.conn, wanted)
    until(lambda: _ended(queue), 60, "all have ended")
    log = _log(queue, set(jobs))
    assert all(log[job][-1] in ("cancelled", "completed") for job in wanted)
    assert all(log[job] == ["completed"] for job in jobs if job not in wanted)
    for job in jobs:
        assert len(queue.effects(str(job))) == (log[job] == ["completed"]), job
