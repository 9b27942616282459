"""What is told of a child that ended badly, what its jobs may use, and when it has served enough."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from shared.jobs.limits import Limits
from tests.support.pools import PoolBench, pool_bench
from tests.support.waiting import until
from workers.pool.progress import WEIGH_JOBS
from workers.pool.usage import MemoryEvents, usage
from workers.pool.watch import Watch
from workers.pool.wear import Recycle


def test_a_death_tells_what_the_job_had_used(short_tmp: Path) -> None:
    with pool_bench(short_tmp, size=1) as bench:
        bench.ready()
        bench.run("burn", seconds=0.4)  # of another job: not counted for the next
        end = bench.run("burn", seconds=1, then="die")
        assert (end.outcome, end.cause, end.death) == ("crashed", "SIGSEGV", True)
        assert end.evidence["signal"] == "SIGSEGV"
        assert 0.02 <= end.evidence["cpu_seconds"] <= 1.2
        assert end.evidence["max_rss_mib"] > 5


def test_a_timeout_tells_it_and_where_the_job_stood(short_tmp: Path) -> None:
    with pool_bench(short_tmp, size=1) as bench:
        bench.ready()
        end = bench.run("burn", timeout=0.5, seconds=60)
        assert (end.outcome, end.death) == ("timeout", False)
        assert end.evidence["cpu_seconds"] >= 0.02
        assert {"stack", "stacks", "max_rss_mib"} <= set(end.evidence)


def test_hunger_that_the_kernel_ended_is_told(short_tmp: Path) -> None:
    counter, limit = short_tmp / "memory.events", short_tmp / "memory.max"
    counter.write_text("low 0\noom 1\noom_kill 3\n")
    limit.write_text("max\n")
    with pool_bench(short_tmp / "home", size=1) as bench:
        bench.pool._watch = Watch({}, MemoryEvents([counter, short_tmp / "none"], [limit]))
        bench.ready()
        assert bench.run("die", signal=int(signal.SIGKILL)).cause == "SIGKILL"  # by somebody
        bench.ready()
        counter.write_text("low 0\noom 2\noom_kill 4\n")
        end = bench.run("die", signal=int(signal.SIGKILL))
        assert (end.cause, end.evidence["out_of_memory"]) == ("out_of_memory", True)
        assert end.death
        assert end.error == "child killed by the kernel, out of memory (signal 9)"
        bench.ready()
        counter.write_text("low 0\noom 2\noom_kill 5\n")
        assert bench.run("die", signal=int(signal.SIGSEGV)).cause == "SIGSEGV"


def test_a_kill_of_one_that_held_nearly_all_memory_is_told_as_hunger(short_tmp: Path) -> None:
    limit = short_tmp / "memory.max"
    with pool_bench(short_tmp / "home", size=1) as bench:
        bench.ready()
        [pid] = bench.pids()
        limit.write_text(str(int((usage(pid).rss + 50) * 1.05) << 20))
        bench.pool._watch = Watch({}, MemoryEvents([], [limit]))
        full = usage(pid).rss + 45
        key = bench.give("hog", mib=50, seconds=60)
        slot = bench.child_of(key)
        bench.turn_until(lambda: slot.memory > full, 10, "a sample of what it holds")
        os.kill(slot.pid, signal.SIGKILL)
        end = bench.end(key)
        assert (end.cause, end.evidence["out_of_memory"]) == ("out_of_memory", True)
        assert end.evidence["max_rss_mib"] > 50


@pytest.fixture
def limited(short_tmp):
    allowed = {"hog": Limits(memory_mib=60), "burn": Limits(cpu_seconds=0.5)}
    with pool_bench(short_tmp, size=2, allowed=allowed) as bench:
        bench.ready()
        yield bench


def test_a_job_that_uses_more_memory_than_its_kind_may_is_killed(limited: PoolBench) -> None:
    sibling = limited.give("sleep", seconds=1)
    assert limited.end(limited.give("hog", mib=30, seconds=0.6)).outcome == "completed"
    end = limited.run("hog", mib=100, seconds=60)
    assert (end.outcome, end.cause, end.death) == ("crashed", "memory_limit", False)
    assert "used more memory than its kind may" in end.error
    assert end.evidence["max_rss_mib"] > 60
    assert "out_of_memory" not in end.evidence
    assert limited.end(sibling).outcome == "completed"


def test_a_job_that_uses_more_cpu_time_than_its_kind_may_is_stopped(limited: PoolBench) -> None:
    assert limited.run("burn", seconds=0.2).outcome == "completed"
    assert limited.run("sleep", seconds=1).outcome == "completed"  # waiting costs none
    end = limited.run("burn", seconds=60)
    assert (end.outcome, end.cause, end.death) == ("timeout", "cpu_limit", False)
    assert 0.5 <= end.evidence["cpu_seconds"] < 5
    assert "burn" in end.evidence["stack"]


def recycled(bench: PoolBench, reason: str) -> float:
    return bench.instruments.child_recycles_total.labels("test", reason).get()


@pytest.mark.parametrize(
    ("recycle", "reason"),
    [
        (Recycle(jobs=10), "jobs"),
        (Recycle(seconds=0.2), "age"),
        (Recycle(mib=30), "memory"),
    ],
)
def test_a_child_that_has_served_long_enough_is_replaced_between_jobs(
    short_tmp: Path, recycle: Recycle, reason: str
) -> None:
    with pool_bench(short_tmp, size=2, recycle=recycle) as bench:
        bench.ready()
        before = bench.pids()
        begun = time.monotonic()
        while recycled(bench, reason) < 4:
            assert time.monotonic() < begun + 30, f"{recycled(bench, reason)} were replaced"
            bench.turn_until(lambda: bench.pool.free, 5, "a child is free")
            bench.give_all([("leak", {"mib": 1})] * 4)
        handed = bench._key
        bench.turn_until(lambda: len(bench.ends) + len(bench.back) == handed, 10, "all ended")
        assert {end.outcome for end in bench.ends} == {"completed"}
        bench.ready()
        assert not set(before) & set(bench.pids())
        assert bench.instruments.child_kills_total.labels("test", "leave").get() == 0


def test_what_leaks_stays_below_the_cap(short_tmp: Path) -> None:
    """Each child may grow by 60 MiB, and then by what WEIGH_JOBS can leak: that is seen."""
    with pool_bench(short_tmp, size=2, recycle=Recycle(mib=60)) as bench:
        bench.ready()
        base = sum(usage(pid).rss for pid in bench.pids())
        most = 0.0
        for _ in range(400):
            bench.turn_until(lambda: bench.pool.free, 5, "a child is free")
            bench.give("leak", mib=1)
            seen = [found.rss for pid in bench.pids() if (found := usage(pid))]
            most = max(most, sum(seen))
        bench.turn_until(lambda: len(bench.ends) == 400, 10, "all jobs ended")
        assert {end.outcome for end in bench.ends} == {"completed"}
        assert recycled(bench, "memory") >= 400 // (60 + 2 * WEIGH_JOBS) - 1
        assert most < base + 2 * (60 + 2 * WEIGH_JOBS)


def test_usage_of_a_process_that_is_gone_is_none() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    until(lambda: usage(pid) is None, 5, "a zombie has no memory")
    os.waitpid(pid, 0)
    assert usage(pid) is None
