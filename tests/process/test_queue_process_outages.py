"""A queue process and a Postgres that is away, slow, locked, restarted or frozen."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import psycopg
import pytest

from tests.support.bounds import at_most
from tests.support.cluster import ThrowawayCluster, frozen
from tests.support.databases import Databases
from tests.support.processes import Programs
from tests.support.queue import TestQueue, alive, children_of
from tests.support.waiting import pause, until
from workers.drain import ENDING, MARGIN


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThrowawayCluster]:
    """A server of this module's own, to be ill-treated."""
    made = ThrowawayCluster()
    yield made
    made.stop()


@pytest.fixture
def queue(cluster: ThrowawayCluster, short_tmp: Path) -> Iterator[TestQueue]:
    databases = Databases(cluster.url)
    url = databases.create()
    programs = Programs(short_tmp, url)
    made = TestQueue(programs, url)
    yield made
    programs.close()
    made.conn.close()
    databases.drop(url)
    databases.close()


def _sessions(queue: TestQueue, what: str) -> list[int]:
    rows = queue.conn.execute(
        "select pid from pg_stat_activity where application_name like %s"
        " and datname = current_database() and application_name <> 'weirkeeper test'",
        (f"weirkeeper {what}",),
    )
    return [row[0] for row in rows]


def test_sessions_that_are_ended_again_and_again_lose_and_double_nothing(queue: TestQueue) -> None:
    queue.start()
    jobs = [queue.enqueue("ok") for _ in range(150)]
    for _ in range(12):
        queue.conn.execute(
            "select pg_terminate_backend(p) from unnest(%s::int[]) p", (_sessions(queue, "t %"),)
        )
        pause(0.15, "sessions come back between two cuts")
    assert {queue.final(job, 40)["outcome"] for job in jobs} == {"completed"}
    assert all(len(queue.effects(job)) == 1 for job in jobs)
    assert queue.count("running") == 0


def test_a_crash_of_the_server_loses_nothing(queue: TestQueue, cluster: ThrowawayCluster) -> None:
    queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 0.05}) for _ in range(60)]
    queue.begun(jobs[10])
    os.kill(_sessions(queue, "t work")[0], signal.SIGKILL)
    queue.conn.close()
    queue.conn = _connected_again(queue)
    until(lambda: all(queue.final(job, 30) for job in jobs), 1, "all are final")
    assert {queue.final(job)["state"] for job in jobs} == {"completed"}
    assert all(queue.effects(job, "end") for job in jobs)


def test_after_a_restart_of_the_server_it_is_woken_again_and_does_not_only_poll(
    queue: TestQueue, cluster: ThrowawayCluster
) -> None:
    """A writer that gives no notice is found by the poll; the others start well before that."""
    queue.start()
    cluster.stop_fast()
    cluster.start()
    queue.conn.close()
    queue.conn = _connected_again(queue)
    until(lambda: _asleep(queue), 5, "it listens and sleeps again")
    took: dict[str, list[float]] = {"on": [], "off": []}
    for _ in range(5):
        for wake, seconds in took.items():
            until(lambda: _asleep(queue), 10, "it sleeps")
            queue.conn.execute(f"set weirkeeper.wake = {wake}")
            job = queue.enqueue("ok")
            committed = time.monotonic()
            queue.begun(job)
            seconds.append(time.monotonic() - committed)
    assert median(took["on"]) < median(took["off"]) / 2, took
    assert min(took["on"]) < at_most(0.2, busy=1.0), took


def _asleep(queue: TestQueue) -> bool:
    """Whether the process sleeps: both locks of its queue are held."""
    row = queue.conn.execute(
        "select count(*) = 2 from pg_locks l join weirkeeper.queue q on l.objid in (2 * q.no, 2 * q.no + 1)"
        " where l.locktype = 'advisory' and l.granted and l.mode = 'ExclusiveLock'"
        " and l.classid = 1464160587 and q.name = 't'"
        " and l.database = (select oid from pg_database where datname = current_database())"
    ).fetchone()
    return row is not None and bool(row[0])


def _connected_again(queue: TestQueue) -> psycopg.Connection[tuple[object, ...]]:
    def attempt() -> psycopg.Connection[tuple[object, ...]] | None:
        try:
            return psycopg.connect(queue.url, autocommit=True)
        except psycopg.OperationalError:
            return None

    return until(attempt, 20, "the server accepts connections")


def test_ends_are_kept_while_their_rows_are_locked(queue: TestQueue) -> None:
    queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 0.4}) for _ in range(4)]
    for job in jobs:
        queue.begun(job)
    with psycopg.connect(queue.url) as other:
        other.execute("lock weirkeeper.running in access exclusive mode")
        until(lambda: all(queue.effects(j, "end") for j in jobs), 20, "the handlers have returned")
        until(lambda: _waits_for_lock(queue), 20, "the ends wait for the lock")
        assert not any(queue.attempts(job) for job in jobs)
    assert {queue.final(job)["outcome"] for job in jobs} == {"completed"}
    assert all(len(queue.effects(job)) == 1 for job in jobs)


def _waits_for_lock(queue: TestQueue) -> bool:
    row = queue.conn.execute(
        "select 1 from pg_stat_activity where application_name = 'weirkeeper t work'"
        " and datname = current_database() and wait_event_type = 'Lock'"
        " and clock_timestamp() - query_start > interval '1 s'"
    ).fetchone()
    return row is not None


def test_a_timeout_is_kept_while_the_table_is_locked(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_GRACE_SECONDS="0.2")
    job = queue.enqueue("stuck", timeout=1)
    pid = queue.begun(job)["pid"]
    with psycopg.connect(queue.url) as other:
        other.execute("lock weirkeeper.running in access exclusive mode")
        until(lambda: not alive(pid), 8, "the child is killed on time")
        until(lambda: len(children_of(program)) == 4, 8, "its slot is refilled")
    assert queue.final(job)["outcome"] == "timeout"


def test_a_timeout_is_kept_while_the_server_stands_still(
    queue: TestQueue, cluster: ThrowawayCluster
) -> None:
    queue.start(WEIRKEEPER_GRACE_SECONDS="0.2")
    job = queue.enqueue("stuck", timeout=1)
    pid = queue.begun(job)["pid"]
    with frozen(cluster):
        until(lambda: not alive(pid), 8, "the child is killed on time")
    assert queue.final(job)["outcome"] == "timeout"


def test_a_process_whose_beat_is_not_heard_ends_its_children_and_itself(
    queue: TestQueue, cluster: ThrowawayCluster
) -> None:
    program = queue.start()
    job = queue.enqueue("sleep", {"seconds": 60})
    pid = queue.begun(job)["pid"]
    with frozen(cluster):
        until(lambda: not alive(pid), 12, "its children are gone before the lease ends")
        assert program.wait(30) == 1
    queue.start(WEIRKEEPER_DRAIN_SECONDS="0")
    queue.begun(job, times=2)


def test_a_stop_while_the_server_stands_still_keeps_its_bound(
    queue: TestQueue, cluster: ThrowawayCluster
) -> None:
    program = queue.start(WEIRKEEPER_DRAIN_SECONDS="1", WEIRKEEPER_GRACE_SECONDS="0.5")
    job = queue.enqueue("sleep", {"seconds": 60})
    queue.begun(job)
    begun = time.monotonic()
    with frozen(cluster):
        assert program.terminate(12) == 75
    # Below what supervisord waits for these bounds; ten seconds for a slow machine.
    assert time.monotonic() - begun < 1 + 0.5 + MARGIN + ENDING + 10
    queue.start(WEIRKEEPER_DRAIN_SECONDS="0")
    queue.begun(job, times=2, timeout=25)


def test_rows_that_a_lost_reply_left_are_given_back(queue: TestQueue) -> None:
    queue.start()
    [epoch] = queue.ready_epochs()
    job = queue.conn.execute(
        "insert into weirkeeper.job (kind, queue, priority, max_attempts, timeout_ms, awaited)"
        " values ('t.ok', 't', 2, 3, 9000, true) returning id"
    ).fetchone()[0]
    queue.conn.execute(
        "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
        " values (%s, 1, 0, 't', 't.ok', 2, %s, 1)",
        (job, epoch),
    )
    last = queue.final(str(job), 15)
    assert (last["outcome"], last["run"], last["attempt"]) == ("completed", 2, 1)


def test_a_server_that_comes_later_is_waited_for(
    queue: TestQueue, cluster: ThrowawayCluster
) -> None:
    job = queue.enqueue("ok")
    with frozen(cluster):
        program = queue.start(ready=False)
        until(lambda: "waiting for the database" in program.text(), 20, "it waits")
        assert program.running()
    assert queue.final(job, 20)["outcome"] == "completed"
