"""Claimable jobs, free children and no claim: the process ends, for its supervisor to start anew.

A trigger that cancels deletions stands for whatever may break claims: they succeed and find nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import psycopg
import pytest

from shared.app import load_app
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues import controls
from shared.postgres.queues.catalog import declare
from tests.support.queue import TestQueue, queue
from tests.support.waiting import until
from workers.attendance import STUCK, WATCH

__all__ = ["queue"]

APP = "tests.support.excused_app:app"
BREAK = """
create function weirkeeper.kept() returns trigger language plpgsql as 'begin return null; end';
create trigger kept before delete on weirkeeper.ready for each row
  when (old.kind = 't.ok') execute function weirkeeper.kept();
"""
# Not a drop of the trigger: that would wait for who has a row locked.
MEND = """
create or replace function weirkeeper.kept() returns trigger language plpgsql
as 'begin return old; end'
"""
UNKNOWN = "update weirkeeper.{} set kind = 'w.unheard' where {} = %s"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def excused(queue: TestQueue) -> dict[str, str]:
    """A waiting job for each reason why a process of the application may not claim it."""
    jobs, control = PostgresJobs(queue.conn), PostgresInspector(queue.conn)

    def add(kind: str, **opts: str) -> str:
        return jobs.enqueue(kind, {"seconds": 200}, EnqueueOpts(**opts))

    for kind, opts in (("w.keyed", {"concurrency_key": "k"}), ("w.rated", {}), ("w.capped", {})):
        queue.begun(add(kind, **opts))  # holds the key, spends the rate, fills the cap
    control.pause(kind="w.paused")
    control.pause(queue="halted")
    controls.quarantine(queue.conn, "w.quarantined", "its jobs kill")
    waiting = {
        "paused": add("w.paused"),
        "halted": add("w.halted"),
        "quarantined": add("w.quarantined"),
        "unknown": add("w.paused"),
        "keyed": add("w.keyed", concurrency_key="k"),
        "rated": add("w.rated"),
        "capped": add("w.capped"),
    }
    for table, column in (("job", "id"), ("ready", "job_id")):
        queue.conn.execute(UNKNOWN.format(table, column), [waiting["unknown"]])
    return waiting


@pytest.fixture
def locked(queue: TestQueue) -> Iterator[Callable[[], str]]:
    """Makes a job whose row another session has locked; the lock lasts as long as the test."""
    with psycopg.connect(queue.url) as other:

        def make() -> str:
            control = PostgresInspector(queue.conn)
            control.pause(kind="w.locked")
            job = PostgresJobs(queue.conn).enqueue("w.locked", {"seconds": 200})
            other.execute("select from weirkeeper.ready where job_id = %s for update", (job,))
            control.resume(kind="w.locked")
            return job

        yield make


def test_a_process_that_claims_nothing_ends_unless_there_is_a_reason(
    queue: TestQueue, locked: Callable[[], str]
) -> None:
    declare(queue.conn, load_app(APP))
    others = [queue.start(queue=name, WEIRKEEPER_APP=APP) for name in ("free", "capped", "halted")]
    waiting = {**excused(queue), "locked": locked()}
    broken = queue.start()
    queue.conn.execute(BREAK)
    job = queue.enqueue("ok")
    begun = time.monotonic()
    code = broken.wait(STUCK + 60)
    assert code == 1, broken.text()
    assert time.monotonic() - begun >= STUCK
    assert "queue t: a job has been claimable for 6" in broken.text()
    assert "children are free, and nothing was claimed for 6" in broken.text()
    assert queue.where(job) == ["ready"]
    until(lambda: time.monotonic() - begun > STUCK + 3 * WATCH, 60, "the others were watched, too")
    assert all(process.running() for process in others), [o.text() for o in others]
    places = {why: queue.where(job) for why, job in waiting.items()}
    assert places == {why: ["parked" if why == "keyed" else "ready"] for why in waiting}
    queue.conn.execute(MEND)
    queue.start()
    assert queue.final(job)["outcome"] == "completed"
