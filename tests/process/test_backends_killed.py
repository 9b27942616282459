"""One backend of Postgres after the other is killed with signal 9 while jobs flow.

Postgres then restarts all sessions and recovers: every claim and end of its last 0.6 s may be lost,
because they are committed asynchronously. Nothing else may be: each job comes to its end.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared.postgres.inspection.inspector import PostgresInspector
from tests.support.bounds import at_most
from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.processes import Programs
from tests.support.queue import TestQueue
from tests.support.waiting import until

KILLS = 20
WHOSE = ("t work", "t child", "t wakes", "t child")
LOST = 0.6  # seconds before a crash whose claims and ends may be lost (docs/operations.md)
NOT_MANY = 40  # tries; each crash may take the session of the same job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def queue(short_tmp: Path) -> Iterator[TestQueue]:
    cluster = ThrowawayCluster()
    databases = Databases(cluster.url)
    programs = Programs(short_tmp, databases.create())
    made = TestQueue(programs, programs.environment["DATABASE_URL"])
    yield made
    programs.close()
    made.conn.close()
    databases.close()
    cluster.stop()


def backend(queue: TestQueue, name: str) -> int | None:
    row = queue.conn.execute(
        "select pid from pg_stat_activity where application_name = %s"
        " and datname = current_database() order by backend_start desc limit 1",
        (f"weirkeeper {name}",),
    ).fetchone()
    return row[0] if row else None


def enqueue(queue: TestQueue) -> list[str]:
    """Jobs of every way to go on: plain, with a result, own session, retry, snooze, a key's turn."""
    more: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("ok", {}, {}),
        ("ok", {"result": "x"}, {}),
        ("sleep", {"seconds": 0.03}, {}),
        ("query", {}, {}),
        ("fail", {"times": 1}, {}),
        ("answer", {"answer": "snooze", "seconds": 0.1}, {}),
        ("pair", {"seconds": 0.01}, {"concurrency_key": "one"}),
    ]
    return [
        queue.enqueue(kind, args, max_attempts=NOT_MANY, **opts)
        for _ in range(6)
        for kind, args, opts in more
    ]


def kill_one(queue: TestQueue, name: str) -> float:
    """Kill a session's server process; return when, with the server accepting again."""
    pid = until(lambda: backend(queue, name), 30, f"{name} has a session")
    os.kill(pid, signal.SIGKILL)
    killed = time.monotonic()
    until(lambda: _gone(queue), 20, "the server ended all sessions")
    queue.conn.close()
    queue.conn = until(lambda: _connected(queue), 30, "the server accepts connections")
    return killed


def _gone(queue: TestQueue) -> bool:
    try:
        queue.conn.execute("select 1")
    except psycopg.OperationalError:
        return True
    return False


def _connected(queue: TestQueue) -> psycopg.Connection[Any] | None:
    try:
        return psycopg.connect(queue.url, autocommit=True)
    except psycopg.OperationalError:
        return None


def unended(queue: TestQueue, jobs: list[str]) -> list[str]:
    rows = queue.conn.execute(
        "select id from unnest(%s::bigint[]) id where not exists (select from weirkeeper.attempt a"
        " where a.job_id = id and a.state in ('completed', 'discarded', 'cancelled'))",
        (jobs,),
    )
    return [str(row[0]) for row in rows]


def told(queue: TestQueue, jobs: list[str]) -> str:
    """Where they are, for who has to find out why."""
    explained = [PostgresInspector(queue.conn).explain(job) for job in jobs[:5]]
    rows = [
        (table, row)
        for table in ("ready", "scheduled", "parked", "running", "attempt", "process", "key")
        for row in queue.conn.execute(
            f"select t::text from weirkeeper.{table} t"
            + (" where job_id = any (%s)" if table not in ("process", "key") else ""),
            [jobs] if table not in ("process", "key") else [],
        )
    ]
    return "\n".join(map(str, [jobs, *explained, *rows]))


def begun_too_often(queue: TestQueue, kills: list[float]) -> list[str]:
    """Jobs that began again although no attempt and no crash tells why."""
    runs: dict[str, list[tuple[float, float]]] = {}
    for entry in map(json.loads, queue.effects_path.read_text().splitlines()):
        if entry["what"] == "begin":
            runs.setdefault(entry["job"], []).append((entry["at"], float("inf")))
        else:
            runs[entry["job"]][-1] = (runs[entry["job"]][-1][0], entry["at"])
    before = at_most(LOST + 0.1, busy=LOST + 5)  # a machine that stands still writes ends late
    wrong = []
    for job, times in runs.items():
        recorded = sum(1 for a in queue.attempts(job) if a["started_at"] is not None)
        unexplained = sum(
            not any(first[0] < kill + before and kill - before < first[1] and kill < second[0]
                    for kill in kills)
            for first, second in pairwise(sorted(times))
        )  # fmt: skip
        if unexplained > recorded - 1:
            wrong.append(f"{job}: {times}, {recorded} recorded")
    return wrong


def test_backends_that_are_killed_again_and_again_lose_nothing(queue: TestQueue) -> None:
    program = queue.start()
    jobs: list[str] = []
    kills: list[float] = []
    for number in range(KILLS):
        jobs += enqueue(queue)
        queue.begun(jobs[-1 - number], timeout=30)
        kills.append(kill_one(queue, WHOSE[number % len(WHOSE)]))
        accepts = time.monotonic()
        jobs.append(queue.enqueue("ok", priority=1))
        queue.begun(jobs[-1], timeout=30)
        assert time.monotonic() - accepts < at_most(5, busy=25)
    try:
        until(lambda: not unended(queue, jobs), 40, "every job is final")
    except AssertionError:
        left = unended(queue, jobs)
        raise AssertionError(f"{told(queue, left)}\n{program.text()}") from None
    last = [queue.final(job) for job in jobs]
    assert {row["state"] for row in last} == {"completed"}, last
    assert program.running(), program.text()
    assert queue.count("running") == queue.count("parked") == queue.count("scheduled") == 0
    assert begun_too_often(queue, kills) == []
    errors = {a["error"] for job in jobs for a in queue.attempts(job) if a["state"] == "retryable"}
    assert any("server closed the connection" in error for error in errors), errors
    assert all(len(error) < 500 for error in errors), errors
