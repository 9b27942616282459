"""Periodic jobs through real processes: frozen, cut off, restarted, killed, with wrong clocks."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.bounds import at_most
from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.periodic_app import EVERY
from tests.support.processes import Program, Programs
from tests.support.queue import TestQueue, children_of
from tests.support.waiting import pause, until

APP = "tests.support.periodic_app:app"
SHIFTED = str(Path(__file__).parents[1] / "support" / "shifted_clock")


class Ticking:
    """Queue processes of the application with periodic jobs, and what its ticks became."""

    def __init__(self, queue: TestQueue, every: float = 3) -> None:
        self.queue = queue
        self.every = every

    def start(self, slot: str, **env: str) -> Program:
        return self.queue.start(
            "--slot", slot, **{"WEIRKEEPER_APP": APP, EVERY: str(self.every), **env}
        )

    def ticks(self, name: str = "t.often") -> list[tuple[datetime, datetime, int]]:
        """(tick, when it was started, job), in order."""
        return self.queue.conn.execute(
            "select tick_at, started_at, job_id from weirkeeper.periodic_tick"
            " where name = %s order by 1",
            (name,),
        ).fetchall()

    def at_least(self, number: int, timeout: float = 60) -> None:
        until(lambda: len(self.ticks()) >= number, timeout, f"{number} ticks were started")

    def kept(self) -> list[str]:
        """Every tick has one job and its place on the grid; return the jobs, all of them final.

        A busy machine may be late by more than an interval. The next tick is then the first one
        after the late start, or after the last one's job left the line, which stands for what was
        missed meanwhile; without such a reason none is left out.
        """
        ticks = self.ticks()
        jobs = [str(job) for _, _, job in ticks]
        assert len(set(jobs)) == len(jobs)
        for job in jobs:
            self.queue.final(job, timeout=60)
        step = timedelta(seconds=self.every)
        for (tick, started, job), (after, _, _) in pairwise(ticks):
            assert (after - tick) % step == timedelta(0), ticks
            out_of_line = [attempt["claimed_at"] for attempt in self.queue.attempts(str(job))]
            assert after - step <= max(tick, started, *out_of_line), ticks
        return jobs

    def ran_once_each(self) -> None:
        """Every tick has one job, which has run once."""
        runs = {job: len(self.queue.effects(job)) for job in self.kept()}
        assert set(runs.values()) == {1}, runs


@pytest.fixture
def ticking(programs: Programs, database_url: str) -> Iterator[Ticking]:
    queue = TestQueue(programs, database_url)
    yield Ticking(queue)
    queue.conn.close()


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_of_two_processes_one_frozen_over_three_ticks_each_tick_is_started_once(ticking):
    """No leader that could sleep: the other one goes on, and what wakes finds the ticks gone."""
    ticking.every = 2
    one, _two = ticking.start("t"), ticking.start("t-2")
    ticking.at_least(2)
    for _ in range(2):
        before = len(ticking.ticks())
        one.send(signal.SIGSTOP)
        try:
            ticking.at_least(before + 3)
        finally:
            one.send(signal.SIGCONT)
        ticking.at_least(before + 4)
    ticking.ran_once_each()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("turns", [3, pytest.param(75, marks=[pytest.mark.slow, pytest.mark.soak])])
def test_sessions_that_are_cut_for_two_seconds_lose_and_double_no_tick(ticking, turns):
    """75 times: minutes in which they are cut for half of the time."""
    ticking.start("t")
    ticking.start("t-2")
    ticking.at_least(1)
    for turn in range(turns):
        end = datetime.now(UTC) + timedelta(seconds=2)
        while datetime.now(UTC) < end:
            ticking.queue.conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name like 'weirkeeper t%'"
                " and application_name not like 'weirkeeper test%'"
            )
            pause(0.05, "the sessions are cut again and again")
        ticking.at_least(turn + 2)
    ticking.ran_once_each()


@pytest.mark.timeout(180)
@pytest.mark.slow
def test_crashes_of_the_server_lose_and_double_no_tick(short_tmp):
    """What a tick did stays done: its commit is on the disk before anybody can claim its job."""
    cluster = ThrowawayCluster()
    databases = Databases(cluster.url)
    programs = Programs(short_tmp, databases.create())
    queue = TestQueue(programs, programs.environment["DATABASE_URL"])
    ticking = Ticking(queue)
    try:
        ticking.start("t")
        ticking.start("t-2")
        for turn in range(3):
            ticking.at_least(turn + 1)
            victim = until(lambda: backend_of(queue.conn), 60, "a session that claims")
            os.kill(victim, signal.SIGKILL)
            until(lambda: not answers(queue.conn), 60, "the server has noticed and ended them all")
            queue.conn.close()
            queue.conn = until(lambda: connected(queue.url), 60, "the server is back")
        ticking.at_least(5)
        assert {queue.final(job)["state"] for job in ticking.kept()} == {"completed"}
    finally:
        programs.close()
        queue.conn.close()
        cluster.stop()


def backend_of(conn: psycopg.Connection[Any]) -> int | None:
    """The server process of a session that claims."""
    row = conn.execute(
        "select pid from pg_stat_activity where application_name = 'weirkeeper t work'"
        " and datname = current_database()"
    ).fetchone()
    return row and row[0]


def answers(conn: psycopg.Connection[Any]) -> bool:
    try:
        conn.execute("select 1")
    except psycopg.OperationalError:
        return False
    return True


def connected(url: str) -> psycopg.Connection[Any] | None:
    try:
        return psycopg.connect(url, autocommit=True)
    except psycopg.OperationalError:
        return None


@pytest.mark.timeout(180)
def test_downtime_is_caught_up_once_and_a_restart_alone_starts_nothing(ticking):
    """Three intervals and a bit away: one start for all of them, the next one on the grid."""
    ticking.every = 600
    program = ticking.start("t")
    ticking.at_least(1)
    ticking.kept()
    program.terminate()
    away(ticking.queue.conn, ticking.every * 3.2)
    program = ticking.start("t")
    ticking.at_least(2)
    for _ in range(2):
        program.terminate()
        program = ticking.start("t")
    ticking.ran_once_each()
    [(first, _, _), (caught_up, _, _)] = ticking.ticks()
    due = ticking.queue.conn.execute(
        "select next_at from weirkeeper.periodic where name = 't.often'"
    ).fetchone()
    assert (caught_up - first, due[0] - first) == (timedelta(seconds=600), timedelta(seconds=2400))
    assert len(ticking.ticks("t.daily")) == 1


def away(conn: psycopg.Connection[Any], seconds: float) -> None:
    """All that periodic jobs know of time is so much longer ago: nothing ran meanwhile."""
    conn.execute(
        "update weirkeeper.periodic_tick set tick_at = tick_at - make_interval(secs => %(s)s),"
        " started_at = started_at - make_interval(secs => %(s)s)",
        {"s": seconds},
    )
    conn.execute(
        "update weirkeeper.periodic set next_at = next_at - make_interval(secs => %(s)s),"
        " last_started_at = last_started_at - make_interval(secs => %(s)s)",
        {"s": seconds},
    )


@pytest.mark.timeout(180)
def test_wrong_clocks_of_the_machines_start_nothing_early_or_late(ticking):
    """One process an hour ahead, one an hour behind: only the database's clock counts."""
    env = {"PYTHONPATH": SHIFTED}
    assert _wall(ticking, TEST_CLOCK_SHIFT="3600", **env) > timedelta(minutes=59)
    ticking.start("t", TEST_CLOCK_SHIFT="3600", **env)
    ticking.start("t-2", TEST_CLOCK_SHIFT="-3600", **env)
    due = datetime.now(UTC) + timedelta(seconds=3)
    job = ticking.queue.enqueue("ok", run_at=due)
    claimed = ticking.queue.final(job, timeout=60)["claimed_at"]
    busy = timedelta(minutes=1)  # of a busy machine; the clocks are an hour off
    assert timedelta(0) <= claimed - due < busy
    ticking.at_least(4)
    ticking.ran_once_each()
    late = [started - tick for tick, started, _ in ticking.ticks()]
    assert all(timedelta(0) <= each < busy for each in late)
    rescued = ticking.queue.conn.execute(
        "select count(*) from weirkeeper.attempt where outcome = 'rescued'"
    ).fetchone()
    assert rescued == (0,)
    assert ticking.queue.ready_epochs() == {
        row[0] for row in ticking.queue.conn.execute("select epoch from weirkeeper.process")
    }


def _wall(ticking: Ticking, **env: str) -> timedelta:
    """How far ahead a program started so believes to be."""
    code = "from shared.clock import SYSTEM; print(SYSTEM.wall().isoformat())"
    program = ticking.queue.programs.execute([sys.executable, "-P", "-c", code], env)
    assert program.wait(20) == 0
    return datetime.fromisoformat(program.text().strip()) - datetime.now(UTC)


@pytest.mark.timeout(180)
def test_a_slot_that_was_killed_with_its_parent_in_mid_job_is_free_again(ticking):
    """One child: what counts as taken is what lives, so the next job starts in time."""
    env = {"WEIRKEEPER_CHILDREN": "t=1"}
    program = ticking.start("t", **env)
    stuck = ticking.queue.enqueue("sleep", {"seconds": 600})
    ticking.queue.begun(stuck)
    [child] = children_of(program)
    os.kill(child, signal.SIGKILL)
    program.send(signal.SIGKILL)
    program.wait(30)
    # In line before the next process starts: else the stuck job, taken back, could be first.
    job = ticking.queue.enqueue("ok", priority=1)
    ticking.start("t", **env)
    ticking.queue.begun(job, timeout=at_most(15, busy=30))


@pytest.mark.timeout(180)
def test_the_engine_keeps_itself_in_order_from_the_first_start_on(ticking):
    ticking.queue.start("--slot", "maintenance", queue="maintenance")
    names = {
        "prune_jobs", "prune_events", "prune_records", "discard_unknown", "verify", "tidy_webhooks",
        "probe_webhooks",
    }  # fmt: skip
    kinds = {f"weirkeeper.{name}" for name in names}

    def done() -> bool:
        rows = ticking.queue.conn.execute(
            "select j.kind, a.state from weirkeeper.job j"
            " join weirkeeper.attempt a on a.job_id = j.id"
        )
        return dict(rows.fetchall()) == dict.fromkeys(kinds, "completed")

    until(done, 60, f"all of {sorted(kinds)} are completed")
