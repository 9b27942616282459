"""Jobs that kill their child, in a real queue process: one ends by its attempts, a kind is set aside.

And what such jobs may cost their neighbours: nearly nothing.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from shared.app import load_app
from shared.postgres.application.runtime import PostgresRuntime
from shared.telemetry.slotfile import entries
from tests.support.queue import APP, TestQueue, children_of, queue
from tests.support.waiting import until

__all__ = ["queue"]


def paused(queue: TestQueue) -> list[tuple[str, str | None]]:
    rows = queue.conn.execute("select name, quarantine from weirkeeper.paused")
    return [(row[0], row[1]) for row in rows]


def test_a_kind_that_kills_its_children_is_quarantined_and_others_go_on(queue: TestQueue) -> None:
    program = queue.start()
    other = queue.start("--slot", "second")
    mended = queue.programs.home / "mended"
    jobs = [queue.enqueue("die", {"unless": str(mended)}, max_attempts=50) for _ in range(6)]
    [(name, why)] = until(lambda: paused(queue), 20, "the kind is quarantined")
    assert name == "t.die"
    assert why == "5 children in a row died: child died by signal 9 (SIGKILL)"

    # Nothing of it runs any more, anywhere; other kinds do.
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    until(lambda: all(queue.where(job) != ["running"] for job in jobs), 10, "none of it runs")
    left = [job for job in jobs if queue.where(job)]
    assert left
    begun = {job: len(queue.effects(job)) for job in jobs}
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    assert {job: len(queue.effects(job)) for job in jobs} == begun

    with PostgresRuntime(queue.url, "test", load_app(APP)) as runtime:
        told = until(
            lambda: (said := runtime.explain(left[0])).waits_for == "resume" and said, 10, "said"
        )
        assert "because kind t.die has been quarantined since" in told.sentence
        assert "child died by signal 9" in told.sentence
        assert "`weirkeeper resume --kind t.die` lets it run" in told.sentence
        assert "is quarantined: 5 children in a row died" in program.text() + other.text()
        # What was wrong is put right, and somebody says so.
        mended.touch()
        runtime.resume(kind="t.die")
    for job in jobs:
        assert queue.final(job, 30)["outcome"] == "completed"
    assert paused(queue) == []


@pytest.mark.slow
def test_a_job_that_kills_its_child_ends_by_its_attempts_and_nobody_else_notices(
    queue: TestQueue,
) -> None:
    program = queue.start()
    queue.final(queue.enqueue("ok"))
    rates: dict[str, list[float]] = {"alone": [], "beside": []}
    for _ in range(3):
        for how in ("alone", "beside"):
            deadly = queue.enqueue("die", {}) if how == "beside" else None
            begun = time.monotonic()
            jobs = [queue.enqueue("sleep", {"seconds": 0.05}) for _ in range(200)]
            for job in jobs:
                queue.final(job, 60)
            rates[how].append(len(jobs) / (time.monotonic() - begun))
            if deadly:
                last = queue.final(deadly, 30)
                assert (last["state"], last["attempt"]) == ("discarded", 3)
                assert last["error"] == "child died by signal 9 (SIGKILL)"
                assert last["evidence"]["signal"] == "SIGKILL"
                assert len(queue.effects(deadly)) == 3
                # One of its kind that lives: the budget of the kind is not what this is about.
                queue.final(queue.enqueue("die", {"times": 0}))
            assert all(len(queue.effects(job)) == 1 for job in jobs)
    assert sorted(rates["beside"])[1] >= 0.9 * sorted(rates["alone"])[1], rates
    assert paused(queue) == []
    assert program.running()


def held(gauges: Path) -> float:
    """The most memory of a child, as a slot's file has it."""
    name = "weirkeeper_child_memory_max_bytes"
    return max((e.value for e in entries(gauges) if e.name == name), default=0.0)


def test_what_is_known_of_a_death_is_shown_at_the_command_line(queue: TestQueue) -> None:
    queue.start()
    seen = queue.programs.home / "seen"
    job = queue.enqueue("hold_and_die", {"mib": 80, "seen": str(seen)}, max_attempts=1)
    gauges = queue.programs.home / "metrics" / "gauge_all_t.db"
    until(lambda: held(gauges) > 80 << 20, 20, "its parent has seen what it holds")
    seen.touch()
    last = queue.final(job)
    assert (last["outcome"], last["cause"]) == ("crashed", "SIGSEGV")
    assert last["evidence"]["max_rss_mib"] > 80
    for command in ("get", "explain"):
        program = queue.programs.start("panel.cli.main", "jobs", command, job, env=queue.env)
        assert program.wait(30) == 0
        said = " ".join(program.text().split())
        assert "signal SIGSEGV" in said, command
        assert "MiB of memory at most" in said, command
        assert "s of CPU time" in said, command


def test_timeouts_and_our_own_kills_do_not_count(queue: TestQueue) -> None:
    queue.start(WEIRKEEPER_GRACE_SECONDS="0.2")
    jobs = [queue.enqueue("stuck") for _ in range(6)]
    for job in jobs:
        assert queue.final(job, 30)["outcome"] == "timeout"
    assert paused(queue) == []


def test_all_children_may_die_at_once_and_the_process_lives(queue: TestQueue) -> None:
    program = queue.start()
    for _ in range(2):
        before = children_of(program)
        assert len(before) == 4
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        until(
            lambda before=before: len(children_of(program) - before) == 4,
            10,
            "all children are replaced",
        )
        assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    assert program.running()
    assert paused(queue) == []


def test_children_that_end_well_or_badly_leave_their_parents_session_alone(
    queue: TestQueue,
) -> None:
    """A child that closed, or used, a session that it inherited would end its parent's."""
    program = queue.start()
    sessions = parents_sessions(queue)
    assert len(sessions) >= 2
    for n in range(20):
        jobs = [
            queue.enqueue("answer", {"answer": "exit"}, max_attempts=1),
            queue.enqueue("die", {"times": 1}),
            queue.enqueue("query"),
        ]
        assert [queue.final(job)["outcome"] for job in jobs] == ["failed", "completed", "completed"]
        if n % 10 == 0:
            for pid in children_of(program):
                shared = sockets(pid) & sockets(program.pid)
                assert not shared, "a child has a socket of its parent"
    assert parents_sessions(queue) == sessions, "the parent had to connect again"
    assert "the database fails" not in program.text()


def parents_sessions(queue: TestQueue) -> set[int]:
    """Server processes of the sessions that a queue process has for itself."""
    rows = queue.conn.execute(
        "select pid from pg_stat_activity where application_name like 'weirkeeper t %%'"
        " and application_name not like '%%child' and datname = current_database()"
    )
    return {row[0] for row in rows}


def sockets(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue
        if target.startswith("socket:"):
            found.add(target)
    return found
