"""How a queue process stops: SIGTERM at work, during boot, twice, with jobs that do not end."""

from __future__ import annotations

import signal
import time
from typing import Any

import psycopg
import pytest

from tests.support.queue import TestQueue, queue
from tests.support.waiting import pause, until

__all__ = ["queue"]

SLACK = 10.0  # seconds that a slow machine may add to a bound of ours


def _drain(queue: TestQueue) -> dict[str, Any]:
    with queue.conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        rows = list(cursor.execute("select * from weirkeeper.drain"))
    assert len(rows) == 1
    return rows[0]


def _process_phase(queue: TestQueue) -> str:
    row = queue.conn.execute("select phase from weirkeeper.process order by epoch desc").fetchone()
    assert row is not None
    return row[0]


def test_a_stop_finishes_what_runs_and_begins_nothing_more(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_CHILDREN="t=1")
    running = queue.enqueue("sleep", {"seconds": 1.5})
    queue.begun(running)
    waiting = [queue.enqueue("ok") for _ in range(20)]
    assert program.terminate(30) == 0
    assert queue.final(running)["outcome"] == "completed"
    assert not any(queue.effects(job) for job in waiting)
    assert all(queue.where(job) == ["ready"] for job in waiting)
    assert queue.count("running") == 0
    row = _drain(queue)
    assert set(row["phases"]) == {"give_back", "wait", "interrupt", "flush"}
    assert 0.5 < row["phases"]["wait"] < 3 + SLACK
    assert (row["jobs"]["finished"], row["jobs"]["interrupted"]) == (1, 0)
    assert _process_phase(queue) == "stopped"


def test_short_jobs_in_the_buffer_are_given_back(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_CHILDREN="t=2")
    for _ in range(20):
        queue.final(queue.enqueue("noop"))  # short jobs are claimed ahead
    jobs = [queue.enqueue("ok") for _ in range(300)]
    assert program.terminate(30) == 0
    assert queue.count("running") == 0
    states = {job: queue.outcomes(job) for job in jobs}
    for job, outcomes in states.items():
        begun = len(queue.effects(job))
        assert outcomes == ["completed"] * begun
        assert queue.where(job) == ([] if begun else ["ready"])


def test_what_overruns_the_drain_is_in_line_again_with_no_attempt_spent(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_DRAIN_SECONDS="0.5", WEIRKEEPER_GRACE_SECONDS="0.5")
    polite = queue.enqueue("sleep", {"seconds": 60})
    stuck = queue.enqueue("stuck", timeout=60)
    for job in (polite, stuck):
        queue.begun(job)
    begun = time.monotonic()
    assert program.terminate(30) == 0
    assert time.monotonic() - begun < 3 + SLACK
    for job in (polite, stuck):
        [attempt] = queue.attempts(job)
        assert (attempt["outcome"], attempt["state"], attempt["attempt"]) == (
            "interrupted",
            "pending",
            0,
        )
        assert queue.where(job) == ["ready"]
    assert _drain(queue)["jobs"]["interrupted"] == 2


def test_a_second_sigterm_shortens_the_wait(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_GRACE_SECONDS="0.5")
    job = queue.enqueue("sleep", {"seconds": 60})
    queue.begun(job)
    program.send(signal.SIGTERM)
    until(lambda: _process_phase(queue) == "draining", 20, "it drains")
    begun = time.monotonic()
    assert program.terminate(30) == 0
    assert time.monotonic() - begun < 3 + SLACK
    assert queue.where(job) == ["ready"]


@pytest.mark.parametrize("step", range(12))
def test_a_stop_during_the_start_ends_within_5_seconds(queue: TestQueue, step: int) -> None:
    program = queue.start(ready=False)
    pause(step * 0.12, "the moment itself is what is tried")
    begun = time.monotonic()
    code = program.terminate(30)
    assert time.monotonic() - begun < 5 + SLACK
    # Before the handler is in place, or after.
    assert code in (0, -signal.SIGTERM), program.text()
    assert not queue.programs.living()
    assert queue.count("running") == 0


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "program", [("workers", "t"), ("relay",), ("listener",), ("metrics",)], ids=lambda p: p[0]
)
def test_a_stop_at_any_moment_of_the_start_leaves_nothing(
    queue: TestQueue, program: tuple[str, ...]
) -> None:
    for step in range(100):
        started = queue.programs.start(*program, env=queue.env)
        pause(step * 0.02, "the moment itself is what is tried")
        begun = time.monotonic()
        code = started.terminate(30)
        assert code in (0, -signal.SIGTERM), (step, started.text())
        assert time.monotonic() - begun < 5 + SLACK, step
        assert not queue.programs.living(), step
        assert queue.count("running") == 0
    started = queue.programs.start(*program, env=queue.env)  # its slot is free
    until(queue.ready_epochs, 60, "it starts as ever")
    assert started.terminate(30) == 0


def test_a_stop_while_handlers_are_being_imported(queue: TestQueue) -> None:
    program = queue.start(ready=False, WEIRKEEPER_APP="tests.support.slow_app:app")
    until(lambda: "importing" in program.text(), 20, "the fork server imports handlers")
    begun = time.monotonic()
    assert program.terminate(30) == 0
    assert time.monotonic() - begun < 5 + SLACK
    assert not queue.programs.living()


def test_a_stop_while_the_database_is_away(queue: TestQueue) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    program = queue.start(ready=False, DATABASE_URL=url)
    until(lambda: "waiting for the database" in program.text(), 20, "it waits")
    begun = time.monotonic()
    assert program.terminate(30) == 0
    assert time.monotonic() - begun < 2 + SLACK
