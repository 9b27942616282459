"""Cancelling in the pool alone: asked, given its grace, killed; told when the child is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.pools import PoolBench, pool_bench
from tests.support.queue import alive


class CancelBench:
    """A pool that notes, at the moment when an end is told, whether the child still lives."""

    def __init__(self, bench: PoolBench) -> None:
        self.bench = bench
        self.lived: dict[int, bool] = {}
        self._pids: dict[int, int] = {}
        told = bench.ended

        def ended(end) -> None:
            self.lived[end.key] = alive(self._pids[end.key])
            told(end)

        bench.ended = ended

    def give(self, do: str, **args) -> int:
        """Hand over a job; wait until its child has surely begun it."""
        key = self.bench.give(do, **args)
        self._pids[key] = self.bench.begun(key).pid
        return key


@pytest.fixture
def cancels(short_tmp: Path) -> Iterator[CancelBench]:
    with pool_bench(short_tmp) as made:
        made.ready()
        yield CancelBench(made)


@pytest.mark.parametrize("do", ["sleep", "stuck"])
def test_a_cancelled_job_is_told_when_its_child_is_gone(cancels, do):
    key = cancels.give(do, seconds=60)
    cancels.bench.pool.stop(key, "cancelled")
    end = cancels.bench.end(key)
    assert (end.outcome, end.cause) == ("cancelled", "cancelled")
    assert cancels.lived[key] is False
    cancels.bench.ready()


def test_one_that_completes_within_the_grace_has_completed(cancels):
    key = cancels.give("swallow", seconds=60)
    cancels.bench.pool.stop(key, "cancelled")
    assert cancels.bench.end(key).outcome == "completed"


def test_an_unknown_one_and_a_second_cancel_do_no_harm(cancels):
    key = cancels.give("sleep", seconds=60)
    other = cancels.give("sleep", seconds=0.5)
    for number in (999, key, key):
        cancels.bench.pool.stop(number, "cancelled")
    assert cancels.bench.end(key).outcome == "cancelled"
    assert cancels.bench.end(other).outcome == "completed"
    cancels.bench.pool.stop(key, "cancelled")
    assert len(cancels.bench.ends) == 2


def test_a_pool_that_waits_for_a_cancelled_child_is_busy(cancels):
    key = cancels.give("sleep", seconds=60)
    cancels.bench.pool.stop(key, "cancelled")
    seen = []
    cancels.bench.turn_until(
        lambda: seen.append((cancels.bench.pool.busy, len(cancels.bench.ends))) or seen[-1][1],
        5,
        "its end",
    )
    assert {busy for busy, ends in seen if not ends} == {1}, "a drain must not overlook it"
