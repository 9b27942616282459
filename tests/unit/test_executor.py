"""Between the loops: how much is claimed ahead, what is handed over, what is taken back."""

from __future__ import annotations

import pytest

from shared.jobs.failures import stack
from tests.support.works import Clock, assignment, claim
from workers.executor import MOST_BYTES, MOST_TOGETHER, Executor
from workers.pool.chunk import End, Run


class FakePool:
    """Children that take jobs and end them when told."""

    def __init__(self, free):
        self.free = free
        self.chunks = []
        self.taken_back = False

    def watch(self, descriptor, ready):
        self.ready = ready

    def give(self, jobs):
        if not self.free:
            raise IndexError
        self.free -= 1
        self.chunks.append([job.job_id for job in jobs])

    @property
    def given(self):
        return [job for chunk in self.chunks for job in chunk]

    def take_back(self):
        self.taken_back = True

    def stop(self, job_id, reason):
        self.executor.returned([claim(job_id), claim(job_id + 1)])


class Ends:
    """Takes what the executor tells."""

    def __init__(self, done):
        self.put = done.append
        self.runs = []

    def put_run(self, run, ended):
        self.runs.append(run)


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
    running = Executor(made, Ends(done), lambda: None)
    running.attach(pool)
    pool.executor = running
    yield running
    made.instruments.close()


def end(executor, pool, key, seconds=0.001, outcome="completed"):
    pool.free += 1
    executor.ended(End(key, outcome, 1.8e9, seconds))
    executor.tend()


def put(executor, pool, *keys, **more):
    executor.put([claim(key, **more) for key in keys])
    pool.ready()
    executor.tend()


def learn(executor, pool, seconds):
    """Have 100 jobs of kind t.ok run, each alone."""
    for key in range(1000, 1100):
        put(executor, pool, key)
        end(executor, pool, key, seconds=seconds)
    pool.chunks.clear()


def test_before_anything_is_measured_only_free_children_count(executor):
    assert executor.room() == 2


def test_short_jobs_are_claimed_ahead_and_one_long_one_ends_it(executor, pool):
    learn(executor, pool, 0.001)
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
    learn(executor, pool, 0.001)
    pool.free = 0
    put(executor, pool, 201, 202, 203)
    assert executor.take_back(older=1) == []
    clock.now += 1
    assert [c.job_id for c in executor.take_back(older=1)] == [201, 202, 203]
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
    executor.tend()
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
    executor.ended(
        End(7, "failed", 1.8e9, 0.1, error="ValueError: no such note", evidence=evidence)
    )
    (entry,) = caplog.records
    assert (entry.levelname, entry.message) == ("WARNING", "ValueError: no such note")
    line = raised.__code__.co_firstlineno + 1
    assert vars(entry)["at"] == f"{__file__}:{line}"
    assert (vars(entry)["job"], vars(entry)["attempt"]) == ("7", claim(7).attempt + 1)
    assert vars(entry)["kind"] == claim(7).kind


def test_short_jobs_travel_together_up_to_5_ms_of_work(executor, pool):
    learn(executor, pool, 0.001)
    pool.free = 1
    put(executor, pool, *range(1, 21))
    assert pool.chunks == [[1, 2, 3, 4]], "1 ms and a little, measured"


def test_tiny_jobs_travel_by_the_dozen_and_are_shared_out_among_free_children(executor, pool):
    learn(executor, pool, 0.00001)
    put(executor, pool, *range(1, 21))
    assert pool.chunks == [list(range(1, 11)), list(range(11, 21))]
    pool.free, pool.chunks = 1, []
    put(executor, pool, *range(100, 300))
    assert len(pool.chunks[0]) == MOST_TOGETHER


def test_slow_unknown_large_and_awaited_jobs_go_alone(executor, pool):
    pool.free = 9
    put(executor, pool, 1, 2)
    assert pool.chunks == [[1], [2]], "never seen"
    pool.free, pool.chunks = 2, []
    learn(executor, pool, 0.00001)
    pool.free = 1
    put(executor, pool, 11, 12, awaited=True)
    assert pool.chunks == [[11]]
    pool.free = 1
    put(executor, pool, 13, line=b" " * MOST_BYTES)
    pool.free = 1
    put(executor, pool, 14)
    assert pool.chunks == [[11], [12], [13]]
    pool.free = 1
    executor.tend()
    assert pool.chunks[-1] == [14]
    pool.free = 1
    executor._lengths.learn("t.ok", 0.006, 1)
    put(executor, pool, 15, 16)
    assert pool.chunks[-1] == [15]


def test_jobs_that_completed_together_are_told_together(executor, pool):
    learn(executor, pool, 0.00001)
    before = executor.outcomes["completed"]
    put(executor, pool, 1, 2, 3, 4)
    executor.completed(Run([claim(1), claim(2)], 1.8e9, 0.001))
    [run] = executor._ends.runs
    assert [c.job_id for c in run.claims] == [1, 2]
    assert executor.outcomes["completed"] - before == 2


def test_what_comes_back_is_first_in_line_in_its_order(executor, pool):
    learn(executor, pool, 0.00001)
    pool.free = 1
    put(executor, pool, 1, 2, 3)
    put(executor, pool, 4)
    executor.returned([claim(2), claim(3)])
    pool.free = 1
    executor.tend()
    assert pool.chunks == [[1, 2, 3], [2, 3, 4]]


def test_a_job_whose_end_was_asked_for_and_that_comes_back_ends_here(executor, pool, done):
    learn(executor, pool, 0.00001)
    done.clear()
    pool.free = 1
    put(executor, pool, 1, 2, 3)
    assert executor.stop([2], "cancelled") == [], "a child holds it"
    pool.ready()
    [end] = done
    assert (end.claim.job_id, end.finish.outcome, end.finish.delay) == (2, "interrupted", 0.0)
    assert end.finish.started_at is None
    assert [c.job_id for c in executor.take_back()] == [3]


def test_closing_takes_back_what_children_have_not_begun(executor, pool):
    executor.close()
    assert pool.taken_back
