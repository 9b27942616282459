"""A cancel on its way through a queue process: heard, looked up, handed to the pool."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from shared.backoff import DEFAULT
from shared.jobs.retry import fate
from shared.jobs.work import CANCEL, Held
from tests.support.works import Clock, ScriptedWork, assignment, claim
from workers.database_loop import DatabaseLoop, Parts, Wake
from workers.executor import Executor
from workers.producer import Producer
from workers.upkeep import Upkeep


class FakePool:
    """Children that take jobs, and are asked to stop them."""

    def __init__(self) -> None:
        self.free = 1
        self.asked: list[tuple[int, str]] = []

    def watch(self, descriptor, ready) -> None:
        self.woken = ready

    def give(self, jobs) -> None:
        if not self.free:
            raise IndexError
        self.free -= 1

    def stop(self, key: int, reason: str) -> None:
        self.asked.append((key, reason))


@pytest.fixture
def parts(tmp_path):
    """A process that runs job 1 and has jobs 2 and 3 in its buffer."""
    clock, pool, work = Clock(), FakePool(), ScriptedWork()
    made = assignment(tmp_path, clock)
    executor = Executor(made, SimpleNamespace(), lambda: None)
    executor.attach(pool)
    producer = Producer(made)
    upkeep = Upkeep(made, executor, producer, lambda _: None)
    claims = [claim(n) for n in (1, 2, 3)]
    work.rows = [Held(c.job_id, c.token, 0.1) for c in claims]
    upkeep.holdings.held.update({c.job_id: c for c in claims})
    executor.put(claims)
    pool.woken()
    executor.tend()
    yield SimpleNamespace(
        clock=clock, pool=pool, work=work, executor=executor, producer=producer, upkeep=upkeep,
        assignment=made,
    )  # fmt: skip
    made.instruments.close()


def test_a_job_that_runs_is_asked_to_stop_and_the_others_stay(parts):
    parts.work.asked = [1]
    parts.upkeep.turn(parts.work)
    parts.pool.woken()
    assert parts.pool.asked == [(1, "cancelled")]
    assert parts.work.given == []


def test_one_that_no_child_has_begun_goes_back_with_all_that_wait(parts):
    parts.work.asked = [2]
    parts.upkeep.turn(parts.work)
    assert parts.work.given == [2, 3], "the database ends 2 and puts 3 in line"
    assert set(parts.upkeep.holdings.held) == {1}


def test_it_is_looked_up_each_second_and_at_once_when_told(parts):
    def asked() -> int:
        looks = []
        parts.work.to_cancel = lambda: looks.append(1) or []
        parts.upkeep.turn(parts.work)
        return len(looks)

    assert asked() == 1
    assert asked() == 0
    parts.upkeep.cancel_soon()
    assert asked() == 1
    parts.clock.now += 1.1
    assert asked() == 1
    parts.upkeep.holdings.held.clear()
    parts.clock.now += 1.1
    assert asked() == 0, "who holds nothing has nothing to look up"


@pytest.mark.parametrize(
    ("notices", "looks"),
    [([CANCEL], ["cancel"]), ([""], ["claim"]), (["", CANCEL], ["cancel", "claim"]), ([], [])],
)
def test_what_a_notice_says_decides_what_is_looked_at(parts, monkeypatch, notices, looks):
    found: list[str] = []
    monkeypatch.setattr(parts.upkeep, "cancel_soon", lambda: found.append("cancel"))
    monkeypatch.setattr(parts.producer, "look", lambda _: found.append("claim"))
    joined = Parts(parts.executor, parts.producer, None, parts.upkeep)
    loop = DatabaseLoop(parts.assignment, None, joined, Wake(), lambda: None)
    loop._heard(notices)
    assert found == looks


def test_a_cancelled_run_is_final_and_spends_nothing():
    found = fate("cancelled", attempt=1, max_attempts=2, delay=None, backoff=DEFAULT)
    assert found == ("cancelled", None, False)
