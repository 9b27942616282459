"""The pool alone: real children, no database."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.errors import ConfigurationError
from tests.support import pool_child
from tests.support.pools import PoolBench, pool_bench
from tests.support.waiting import lateness, until
from workers.pool.tree import children, descendants


@pytest.fixture
def bench(short_tmp: Path) -> Iterator[PoolBench]:
    with pool_bench(short_tmp) as made:
        made.ready()
        yield made


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_a_job_gives_its_result_as_it_is(bench: PoolBench) -> None:
    value = {"n": [1, 2.5, None, True], "text": 'é\u2028\\ "', "big": 2**63 - 1}
    assert bench.values([bench.give("ok", value=value)]) == [value]
    assert bench.ends[0].outcome == "completed"


def test_args_of_256_kib_reach_the_child(bench: PoolBench) -> None:
    assert bench.values([bench.give("size", text="x" * (256 * 1024))]) == [256 * 1024]


def test_a_message_that_the_kernel_refuses_ends_that_job_alone(bench: PoolBench) -> None:
    end = bench.end(bench.give("size", text="x" * (9 << 20)))
    assert (end.outcome, end.cause) == ("discarded", "too_long")
    assert bench.run("ok").outcome == "completed"


def test_children_run_side_by_side_and_are_reused(bench: PoolBench) -> None:
    first = bench.values([bench.give("pid"), bench.give("pid")])
    bench.ready()
    assert sorted(first) == bench.pids()
    assert bench.values([bench.give("pid")])[0] in first


def test_a_timeout_stops_the_job_and_replaces_only_its_child(bench: PoolBench) -> None:
    sibling = bench.give("sleep", seconds=1)
    with lateness(time.monotonic) as late:
        end = bench.end(bench.give("sleep", timeout=0.2, seconds=60))
    assert end.outcome == "timeout"
    assert "time.sleep" in end.evidence["stack"]
    assert 0.2 <= end.seconds < 0.6 + 4 * late.worst
    assert bench.end(sibling).outcome == "completed"
    bench.ready()
    assert bench.run("ok").outcome == "completed"


def test_a_job_stuck_in_c_with_signals_masked_is_killed_on_time(bench: PoolBench) -> None:
    sibling = bench.give("sleep", seconds=1)
    with lateness(time.monotonic) as late:
        end = bench.end(bench.give("stuck", timeout=0.2))
    assert end.outcome == "timeout"
    assert 0.7 <= end.seconds < 0.7 + 0.25 + 4 * late.worst
    assert "pool_child.py" in end.evidence["stacks"]
    assert " in stuck" in end.evidence["stacks"]
    assert bench.end(sibling).outcome == "completed"


def test_a_job_that_answers_within_its_grace_keeps_its_answer(bench: PoolBench) -> None:
    pids = bench.pids()
    end = bench.end(bench.give("swallow", timeout=0.2))
    assert (end.outcome, end.result) == ("completed", '"done all the same"')
    bench.turn_until(
        lambda: bench.pool.free == 2 and bench.pids() != pids, 5, "its child is replaced"
    )


@pytest.mark.parametrize(
    ("do", "args", "cause", "evidence"),
    [
        ("die", {"signal": int(signal.SIGKILL)}, "SIGKILL", {"signal": "SIGKILL"}),
        ("die", {"signal": int(signal.SIGSEGV)}, "SIGSEGV", {"signal": "SIGSEGV"}),
        ("exit", {"code": 3}, "exit", {"exit_code": 3}),
        ("exit", {"code": 255}, "exit", {"exit_code": 255}),
        ("exit", {"code": 0}, "exit", {"exit_code": 0}),
    ],
)
def test_a_dead_child_is_a_crash_with_its_evidence(
    bench: PoolBench, do: str, args: dict[str, int], cause: str, evidence: dict[str, object]
) -> None:
    end = bench.run(do, **args)
    assert (end.outcome, end.cause, end.evidence, end.death) == ("crashed", cause, evidence, True)
    bench.ready()
    assert bench.run("ok").outcome == "completed"


def test_an_outcome_that_was_sent_before_death_counts(bench: PoolBench) -> None:
    key = bench.give("ok", value=1)
    slot = bench.child_of(key)
    until(lambda: select.select([slot.channel], [], [], 0)[0], 20, "the outcome is in the pipe")
    os.kill(slot.pid, signal.SIGKILL)
    until(lambda: select.select([slot.sentinel], [], [], 0)[0], 20, "the child's death is told")
    bench.pool._bury(slot)
    assert bench.end(key).outcome == "completed"


def test_a_handler_that_closes_the_pipe_loses_only_its_child(bench: PoolBench) -> None:
    end = bench.run("close")
    assert (end.outcome, end.cause, end.death) == ("crashed", "protocol", False)
    assert end.evidence["signal"] == "SIGKILL"
    bench.ready()


@pytest.mark.parametrize("then", ["wait", "die"])
def test_what_a_handler_started_dies_with_its_child(bench: PoolBench, then: str) -> None:
    mark = f"{600 + os.getpid() % 1000}.{time.monotonic_ns() % 10**6}"
    key = bench.give("programs", timeout=0.5, mark=mark, then=then)
    child = bench.child_of(key).pid
    if then == "wait":
        started = bench.turn_until(
            lambda: [p for p in (descendants(child),) if len(p) == 2], 5, "two programs"
        )[0]
    bench.end(key)
    bench.turn_until(lambda: not _sleeps(mark), 20, "both programs are gone")
    if then == "wait":
        assert not any(map(_alive, started))


def _sleeps(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if mark.encode() in (entry / "cmdline").read_bytes() and _alive(int(entry.name)):
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def test_the_death_of_the_fork_server_costs_no_attempt_and_is_mended(bench: PoolBench) -> None:
    before = bench.pids()
    keys = [bench.give("sleep", seconds=60), bench.give("sleep", seconds=60)]
    for key in keys:
        bench.begun(key)
    bench.pool.kill_now()
    assert [bench.end(key).outcome for key in keys] == ["lost", "lost"]
    assert not any(map(_alive, before))
    bench.ready()
    assert bench.run("ok").outcome == "completed"


def test_two_children_that_die_at_once_have_each_crashed(bench: PoolBench) -> None:
    """The replacement of the first is started before the death of the second was looked at."""
    keys = [bench.give("sleep", seconds=60), bench.give("sleep", seconds=60)]
    slots = [bench.begun(key, 0.0) for key in keys]
    for slot in slots:
        os.kill(slot.pid, signal.SIGKILL)
    for slot in slots:
        until(
            lambda slot=slot: select.select([slot.sentinel], [], [], 0)[0], 5, "its death is told"
        )
    bench.pool._bury(slots[0])
    bench.pool._refill()
    bench.pool._bury(slots[1])
    assert [bench.end(key).outcome for key in keys] == ["crashed", "crashed"]


def test_children_that_die_idle_are_replaced(bench: PoolBench) -> None:
    before = bench.pids()
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    bench.turn_until(
        lambda: bench.pool.free == 2 and not set(before) & set(bench.pids()), 3, "new children"
    )


def test_signals_to_the_group_leave_children_alone(bench: PoolBench) -> None:
    key = bench.give("sleep", seconds=0.5)
    for pid in bench.pids():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(pid, number)
    assert bench.end(key).outcome == "completed"


def test_an_interrupted_pool_stops_its_jobs_and_fills_no_seat_again(bench: PoolBench) -> None:
    key = bench.give("sleep", seconds=60)
    bench.begun(key)
    bench.pool.interrupt()
    assert bench.end(key).outcome == "interrupted"
    bench.turn_until(lambda: not bench.pool._slots, 20, "all children have left")


def test_children_inherit_no_socket_but_their_own(bench: PoolBench) -> None:
    [listing] = bench.values([bench.give("fds")])
    assert sum(link.startswith("socket:") for link in listing) == 1


def test_children_that_refuse_refuse_the_pool(short_tmp: Path) -> None:
    with (
        pool_bench(short_tmp, target=pool_child.refuse) as bench,
        pytest.raises(ConfigurationError, match="module nowhere"),
    ):
        bench.turn_until(lambda: False, 10, "a refusal")


def test_a_pool_that_closes_minds_no_refusal(short_tmp: Path) -> None:
    with pool_bench(short_tmp, target=pool_child.refuse) as bench:
        bench.pool._refill()
        channels = [slot.channel for slot in bench.pool._slots]
        until(lambda: len(select.select(channels, [], [], 0)[0]) == 2, 10, "both children refused")
        bench.pool.close()
    assert not bench.pool._slots


def test_a_child_that_never_says_hello_is_killed(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.pool.pool.BOOT", 0.3)
    with pool_bench(short_tmp, target=pool_child.hang) as bench:
        bench.turn_until(lambda: bench.pool._respawn.boot_failures >= 2, 20, "two hung boots")


def test_a_replacement_that_hangs_while_it_boots_is_killed_and_its_siblings_work_on(
    short_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.pool.pool.BOOT", 1.5)
    file = short_tmp / "hang"
    monkeypatch.setenv("TEST_HANG", str(file))
    with pool_bench(short_tmp, target=pool_child.hang_if_told) as bench:
        bench.ready()
        file.touch()
        assert bench.run("die", signal=int(signal.SIGKILL)).outcome == "crashed"
        bench.turn_until(lambda: not file.exists(), 5, "the replacement hangs")
        killed = bench.instruments.child_kills_total.labels("test", "boot")
        while not killed.get():
            assert bench.run("ok").outcome == "completed"
        bench.ready()


def test_no_process_is_left_when_the_pool_closes(short_tmp: Path) -> None:
    before = children(os.getpid())
    with pool_bench(short_tmp) as bench:
        bench.ready()
        bench.give("stuck")
        pids = bench.pids()
    assert not any(map(_alive, pids))
    assert children(os.getpid()) == before
