"""Async handlers in real children: one loop each, stopped where they await, nothing left behind."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.context_app import APP
from tests.support.queue import queue
from tests.support.waiting import until

__all__ = ["queue"]


@pytest.fixture
def started(queue):
    queue.programs_started = queue.start(WEIRKEEPER_APP=APP, WEIRKEEPER_GRACE_SECONDS="3")
    return queue


def hooked(queue, job):
    return [entry["outcome"] for entry in queue.effects(job, "hook")]


def test_one_loop_serves_all_jobs_of_a_child(queue):
    queue.start(queue="u", WEIRKEEPER_APP=APP)
    jobs = [queue.enqueue("echo", {"n": n}) for n in range(5)]
    assert [queue.final(job)["result"] for job in jobs] == [{"n": n} for n in range(5)]
    assert len({(queue.effects(job)[0]["pid"], queue.effects(job)[0]["loop"]) for job in jobs}) == 1


def test_it_is_stopped_where_it_stands_and_cleans_up(started, database_url):
    awaits = started.enqueue("await_for_ever", {"cleanup": 0.1})
    answers = started.enqueue("await_for_ever", {"answer": 17})
    blocks, queries = started.enqueue("block"), started.enqueue("query")

    last = started.final(awaits)
    assert (last["outcome"], last["state"], last["cause"]) == ("timeout", "discarded", "timeout")
    assert [told["asked"] for told in started.effects(awaits, "cancelled")] == [True]
    assert len(started.effects(awaits, "cleaned")) == 1
    assert "in await_for_ever" in last["evidence"]["stack"]
    assert hooked(started, awaits) == ["stopped"]

    # What it answers within the grace counts.
    last = started.final(answers)
    assert (last["outcome"], last["result"]) == ("completed", 17)

    # One that never awaits is interrupted where it stands, like any other.
    last = started.final(blocks)
    assert last["outcome"] == "timeout"
    assert len(started.effects(blocks, "cleaned")) == 1
    assert "in deaf" in last["evidence"]["stack"]

    # One that waits in the driver has its query cancelled.
    assert started.final(queries)["outcome"] == "timeout"
    with psycopg.connect(database_url, autocommit=True) as conn:
        running = "select from pg_stat_activity where query = 'select pg_sleep(600)'"
        until(lambda: not conn.execute(f"{running} and state = 'active'").fetchall(), 20, "over")


def test_a_drain_interrupts_it_without_spending_a_try(queue):
    program = queue.start(WEIRKEEPER_APP=APP, WEIRKEEPER_DRAIN_SECONDS="0")
    job = queue.enqueue("await_for_ever", timeout=60, max_attempts=5)
    queue.begun(job)
    assert program.terminate(20) == 0
    assert queue.outcomes(job) == ["interrupted"]
    assert len(queue.effects(job, "cleaned")) == 1
    assert queue.attempts(job)[0]["attempt"] == 0


def test_tasks_that_it_leaves_are_cancelled_and_the_log_names_them(started):
    job = started.enqueue("leave_tasks")
    assert started.final(job)["result"] is True
    assert len(started.effects(job, "straggler ended")) == 1
    until(lambda: "left tasks behind" in started.programs_started.text(), 20, "the log says so")
    [line] = [x for x in started.programs_started.text().splitlines() if "left tasks" in x]
    assert "straggler" in line
    assert f'"job": "{job}"' in line
