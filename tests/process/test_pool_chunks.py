"""Jobs that travel together: what hangs or dies in the middle costs only itself. Real children."""

from __future__ import annotations

import itertools
import os
import random
import signal
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.bounds import at_most
from tests.support.pools import PoolBench, pool_bench
from workers.pool.slot import State

OK: tuple[str, dict[str, Any]] = ("ok", {})
HANG = ("sleep", {"seconds": 60})


@pytest.fixture
def bench(short_tmp: Path) -> Iterator[PoolBench]:
    with pool_bench(short_tmp) as made:
        made.ready()
        yield made


def outcomes(bench: PoolBench) -> dict[int, str]:
    assert len({end.key for end in bench.ends}) == len(bench.ends), "each ends once"
    return {end.key: end.outcome for end in bench.ends}


def turn_to(bench: PoolBench, ended: int, back: int) -> None:
    bench.turn_until(
        lambda: len(bench.ends) >= ended and len(bench.back) >= back, 10, f"{ended} + {back}"
    )


def test_what_all_completed_is_told_by_one_message(bench: PoolBench) -> None:
    keys = bench.give_all([OK] * 50)
    slot = bench.child_of(keys[0])
    turn_to(bench, 50, 0)
    assert set(outcomes(bench).values()) == {"completed"}
    assert slot.state is State.IDLE
    assert sum(end.seconds for end in bench.ends) < 5


def test_results_and_failures_travel_by_themselves(bench: PoolBench) -> None:
    keys = bench.give_all(
        [OK, ("ok", {"value": 7}), ("fail", {"error": "no"}), OK, ("ok", {"value": "last"})]
    )
    turn_to(bench, 5, 0)
    told = [(e.key - keys[0], e.outcome, e.result, e.error) for e in bench.ends]
    assert told == [
        (0, "completed", None, None),
        (1, "completed", "7", None),
        (2, "failed", None, "no"),
        (3, "completed", None, None),
        (4, "completed", '"last"', None),
    ]
    bench.ready()
    assert bench.run("ok", value=1).result == "1"


def test_args_that_python_cannot_read_cost_only_their_job(bench: PoolBench) -> None:
    bench.give_all([OK, OK, OK])
    turn_to(bench, 3, 0)
    long = "9" * 5000
    bench._key = 100
    job = bench.job("ok", {"value": 1})
    unreadable = job._replace(
        job_id=101, line=job.line.replace(b'"value": 1', b'"value": ' + long.encode())
    )
    bench.pool.give([bench.job("ok", {}), unreadable, bench.job("ok", {"value": 2})])
    turn_to(bench, 6, 0)
    assert [e.outcome for e in bench.ends[3:]] == ["completed", "discarded", "completed"]
    assert "cannot read" in str(bench.ends[4].error)


def test_nothing_waits_behind_a_job_that_hangs(bench: PoolBench) -> None:
    keys = bench.give_all([OK, OK, HANG, OK, OK], timeout=1.5)
    turn_to(bench, 2, 2)
    assert outcomes(bench) == {keys[0]: "completed", keys[1]: "completed"}
    assert bench.back == list(keys[3:])
    assert bench.child_of(keys[2]).state is State.BUSY, "taken back long before its timeout"
    elsewhere = bench.give_all([OK, OK])
    turn_to(bench, 4, 2)
    assert {outcomes(bench)[key] for key in elsewhere} == {"completed"}
    end = bench.end(keys[2])
    assert end.outcome == "timeout"
    assert 1.5 <= end.seconds < at_most(2.5, busy=15), "its time runs from its own beginning"
    assert "time.sleep" in end.evidence["stack"]
    bench.ready()


def test_one_stuck_in_c_with_signals_masked_holds_nobody_up(bench: PoolBench) -> None:
    keys = bench.give_all([OK, ("stuck", {}), OK], timeout=0.3)
    turn_to(bench, 1, 1)
    assert bench.back == [keys[2]]
    assert bench.end(keys[1]).outcome == "timeout"
    assert outcomes(bench) == {keys[0]: "completed", keys[1]: "timeout"}


@pytest.mark.parametrize("do", [("die", {"signal": int(signal.SIGKILL)}), ("exit", {"code": 3})])
def test_a_crash_in_the_middle_spends_one_attempt(
    bench: PoolBench, do: tuple[str, dict[str, Any]]
) -> None:
    keys = bench.give_all([OK, ("ok", {"value": 1}), OK, do, OK, OK])
    turn_to(bench, 4, 2)
    assert outcomes(bench) == {
        keys[0]: "completed", keys[1]: "completed", keys[2]: "completed", keys[3]: "crashed",
    }  # fmt: skip
    assert bench.back == list(keys[4:])


def test_the_death_of_the_fork_server_hurts_what_ran(bench: PoolBench) -> None:
    keys = bench.give_all([OK, HANG, OK])
    bench.begun(keys[1], 0.0)
    bench.pool.kill_now()
    turn_to(bench, 2, 1)
    assert outcomes(bench) == {keys[0]: "completed", keys[1]: "lost"}
    assert bench.back == [keys[2]]


def test_a_frozen_child_holds_none_of_what_it_has_not_begun(bench: PoolBench) -> None:
    slot = bench.pool._idle[-1]
    os.kill(slot.pid, signal.SIGSTOP)
    keys = bench.give_all([OK, OK, OK])
    assert bench.child_of(keys[0]) is slot
    bench.turn_until(lambda: len(bench.back) == 2, 20, "those behind the first")
    bench.turn_until(lambda: len(bench.back) == 3, 20, "the first, too")
    assert sorted(bench.back) == list(keys)
    os.kill(slot.pid, signal.SIGCONT)
    bench.ready()
    assert bench.ends == []
    assert bench.run("ok", value=1).result == "1"


def test_a_child_frozen_in_a_job_goes_on_with_that_job_alone(bench: PoolBench) -> None:
    keys = bench.give_all([("sleep", {"seconds": 0.3}), OK, OK])
    slot = bench.child_of(keys[0])
    bench.begun(keys[0], 0.0)
    os.kill(slot.pid, signal.SIGSTOP)
    turn_to(bench, 0, 2)
    os.kill(slot.pid, signal.SIGCONT)
    turn_to(bench, 1, 2)
    assert outcomes(bench) == {keys[0]: "completed"}


def test_a_permit_that_came_too_late_lets_no_running_job_be_taken_back(bench: PoolBench) -> None:
    slot = bench.pool._idle[-1]
    slot._shared().permit(1)  # given again to a child that was done meanwhile
    key = bench.give("sleep", seconds=0.5)
    assert bench.child_of(key) is slot
    bench.begun(key, 0.0)
    bench.pool.take_back()
    assert bench.end(key).outcome == "completed"
    assert bench.back == []


def test_cancelling_one_that_was_not_begun_returns_it_and_stops_nothing(bench: PoolBench) -> None:
    keys = bench.give_all([("sleep", {"seconds": 0.5}), OK, OK])
    slot = bench.child_of(keys[0])
    bench.pool.stop(keys[2], "cancelled")
    assert set(bench.back) >= {keys[1], keys[2]}
    if keys[0] not in bench.back:  # nothing was begun yet, and all came back
        assert bench.end(keys[0]).outcome == "completed"
    assert slot.reason == ""


def test_cancelling_the_one_that_runs_stops_it_alone(bench: PoolBench) -> None:
    keys = bench.give_all([OK, HANG, OK])
    bench.begun(keys[1], 0.0)
    bench.pool.stop(keys[1], "cancelled")
    end = bench.end(keys[1])
    assert (end.outcome, outcomes(bench)[keys[0]]) == ("cancelled", "completed")
    assert bench.back == [keys[2]]
    bench.pool.stop(keys[0], "cancelled")


def test_a_stop_takes_back_what_was_not_begun_and_interrupts_what_runs(bench: PoolBench) -> None:
    keys = bench.give_all([OK, HANG, OK])
    bench.begun(keys[1], 0.0)
    bench.pool.interrupt()
    assert bench.end(keys[1]).outcome == "interrupted"
    bench.turn_until(lambda: not bench.pool._slots, 20, "all children have left")
    assert outcomes(bench) == {keys[0]: "completed", keys[1]: "interrupted"}
    assert bench.back == [keys[2]]


def test_each_of_5000_jobs_happens_once_whoever_is_killed(short_tmp: Path) -> None:
    """Killed children cost the jobs that ran in them, and no other is lost or repeated."""
    file = short_tmp / "notes"
    chance = random.Random(5)
    with pool_bench(short_tmp) as bench:
        bench.ready()
        waiting = deque(bench.job("note", {"file": str(file), "number": n}) for n in range(1, 5001))
        by_key = {job.job_id: job for job in waiting}
        kills = 0
        for turn in itertools.count():
            waiting.extendleft(by_key[key] for key in reversed(bench.back))
            bench.back.clear()
            while bench.pool.free and waiting:
                size = min(chance.randint(1, 50), len(waiting))
                chunk = [waiting.popleft() for _ in range(size)]
                try:
                    bench.pool.give(chunk)
                except IndexError:  # the free child turned out to be dead
                    waiting.extendleft(reversed(chunk))
            if kills < 25 and turn % 3 == 0 and bench.pool._slots:
                slot = chance.choice(sorted(bench.pool._slots, key=lambda s: s.pid))
                if slot.state is State.BUSY and not slot.dead():
                    os.kill(slot.pid, signal.SIGKILL)
                    kills += 1
            bench.pool.turn(0.02)
            if not waiting and not bench.back and not bench.pool.busy:
                break
    ends = outcomes(bench)
    crashed = [key for key, outcome in ends.items() if outcome == "crashed"]
    assert sorted(ends) == sorted(by_key)
    assert kills > 5
    assert len(crashed) <= kills
    assert {ends[key] for key in ends if key not in crashed} == {"completed"}
    happened = Counter(map(int, file.read_text().split()))
    assert {key: happened[key] for key in ends if key not in crashed} == dict.fromkeys(
        [key for key in ends if key not in crashed], 1
    )
    assert all(happened[key] <= 1 for key in crashed)
