"""Between the loops: how much is claimed ahead, what is handed over, what is taken back."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from shared.jobs.failures import stack
from tests.support.works import Clock, assignment, claim
from workers.executor import Executor
from workers.pool.slot import End


class FakePool:
    """Children that take jobs and end them when told."""

    def __init__(self, free):
        self.free = free
        self.given = []

    def watch(self, descriptor, ready):
        self.ready = ready

    def give(self, job):
        if not self.free:
            raise IndexError
        self.free -= 1
        self.given.append(job.key)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pool():
    return FakePool(2)


@pytest.fixture
def done():
    return []


@pytest.fixture
def executor(tmp_path, clock, pool, done):
    made = assignment(tmp_path, clock)
    running = Executor(made, done.append, lambda: None)
    running.attach(pool)
    yield running
    made.instruments.close()


def end(executor, pool, key, seconds=0.001, outcome="completed"):
    pool.free += 1
    executor.ended(End(key, outcome, datetime(2026, 1, 1, tzinfo=UTC), seconds))


def put(executor, pool, *keys):
    executor.put([claim(key) for key in keys])
    pool.ready()


def test_before_anything_is_measured_only_free_children_count(executor):
    assert executor.room() == 2


def test_short_jobs_are_claimed_ahead_and_one_long_one_ends_it(executor, pool):
    for key in range(100):
        put(executor, pool, key)
        end(executor, pool, key, seconds=0.001)
    assert executor.room() == pytest.approx(2 + 2 * 0.05 / 0.001, abs=5)
    put(executor, pool, 200)
    end(executor, pool, 200, seconds=3)
    assert executor.room() == 2


def test_what_is_buffered_takes_room(executor, pool):
    put(executor, pool, 1, 2, 3)
    assert pool.given == [1, 2]
    assert executor.room() == 0
    end(executor, pool, 1)
    assert pool.given == [1, 2, 3]


def test_ends_are_judged_and_told(executor, pool, done):
    put(executor, pool, 1)
    end(executor, pool, 1, outcome="interrupted")
    assert [(d.claim.job_id, d.finish.outcome) for d in done] == [(1, "interrupted")]
    assert executor.outcomes == {"interrupted": 1}


def test_what_no_child_has_begun_is_taken_back(executor, pool):
    put(executor, pool, 1, 2, 3, 4)
    assert [c.job_id for c in executor.take_back()] == [3, 4]
    assert executor.take_back() == []


def test_only_what_waits_long_is_taken_back_and_nothing_is_claimed_ahead_then(
    executor, pool, clock
):
    for key in range(100):
        put(executor, pool, key)
        end(executor, pool, key, seconds=0.001)
    put(executor, pool, 201, 202, 203)
    assert executor.take_back(older=1) == []
    clock.now += 1
    assert [c.job_id for c in executor.take_back(older=1)] == [203]
    assert executor.room() == 0


def test_a_closed_one_begins_nothing(executor, pool):
    executor.close()
    put(executor, pool, 1)
    assert pool.given == []
    assert executor.room() == 0
    assert [c.job_id for c in executor.take_back()] == [1]


def test_a_job_whose_child_turned_out_dead_is_first_again(executor, pool):
    original = pool.give

    def dead(job):
        pool.free = 0
        raise IndexError

    pool.give = dead
    put(executor, pool, 1, 2)
    pool.give = original
    pool.free = 1
    executor.feed()
    assert pool.given == [1]


def test_a_job_that_is_claimed_again_while_it_runs_goes_on_under_the_new_claim(
    executor, pool, done
):
    put(executor, pool, 1)
    executor.put([claim(1, token=99, run=2)])
    pool.ready()
    assert pool.given == [1]
    end(executor, pool, 1)
    assert done[0].finish.token == 99


def test_what_has_run_for_a_moment_is_told_once(executor, pool, clock):
    put(executor, pool, 1, 2)
    assert executor.unmarked() == []
    end(executor, pool, 2)
    clock.now += 0.3
    assert [c.job_id for c in executor.unmarked()] == [1]
    assert executor.unmarked() == []


def raised():
    raise ValueError("no such note")


def test_a_failure_is_a_warning_that_names_job_and_place(executor, pool, caplog):
    put(executor, pool, 7)
    try:
        raised()
    except ValueError as error:
        evidence = {"stack": stack(error)}
    pool.free += 1
    at = datetime(2026, 1, 1, tzinfo=UTC)
    executor.ended(End(7, "failed", at, 0.1, error="ValueError: no such note", evidence=evidence))
    (entry,) = caplog.records
    assert (entry.levelname, entry.message) == ("WARNING", "ValueError: no such note")
    line = raised.__code__.co_firstlineno + 1
    assert vars(entry)["at"] == f"{__file__}:{line}"
    assert (vars(entry)["job"], vars(entry)["attempt"]) == ("7", claim(7).attempt + 1)
    assert vars(entry)["kind"] == claim(7).kind
