"""What a queue process stores, when its rows are fought over, its owner's row is gone, or the schema
is changed under it: nothing is lost, nothing is run twice.
"""

from __future__ import annotations

import signal
import threading

import psycopg
import pytest

from metrics.files import merged
from shared.postgres.driver.connect import Use
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.rescues import SEEN, Beats, dead_owners, rescue
from tests.support.queue import TestQueue, queue
from tests.support.steps import Notices
from tests.support.waiting import pause, until
from tests.support.works import Clock

__all__ = ["queue"]

LOCK_SECONDS = int(Use.HOT.value[-1].removesuffix("s"))
LOCK = "select from weirkeeper.running where job_id = %s for update"
# A finish that holds rows and waits for one that another session has.
BLOCKED = (
    "select 1 from pg_stat_activity where datname = current_database()"
    " and application_name = 'weirkeeper t work' and %s = any (pg_blocking_pids(pid))"
)


def counted(queue: TestQueue, name: str, **labels: str) -> float:
    """What the processes counted under this name, as metrics tell it."""
    return sum(
        sample.value
        for family in merged(queue.programs.home / "metrics").families
        for sample in family.samples
        if sample.name == f"weirkeeper_{name}" and labels.items() <= sample.labels.items()
    )


def test_ends_that_lose_a_deadlock_are_written_again(queue: TestQueue) -> None:
    """Three times the server ends the transaction that writes two ends; both are kept."""
    program = queue.start()
    jobs = sorted(int(queue.enqueue("sleep", {"seconds": 1.0})) for _ in range(2))
    for job in jobs:
        queue.begun(str(job))
    first, last = jobs
    with psycopg.connect(queue.url) as other:
        other.execute("set deadlock_timeout = '1min'")  # it is never the one that is ended
        other.execute(LOCK, (last,))
        until(lambda: all(queue.effects(str(job), "end") for job in jobs), 10, "both have ended")
        for turn in range(3):
            me = other.info.backend_pid
            until(
                lambda m=me: queue.conn.execute(BLOCKED, (m,)).fetchone(),
                20,
                "the ends wait for us",
            )
            other.execute("savepoint before")
            other.execute(LOCK, (first,))  # the circle is closed, and the finish is ended
            other.execute("rollback to before")
            until(lambda t=turn: program.text().count("40P01") > t, 10, "the deadlock is told")
    for job in jobs:
        assert queue.final(str(job))["outcome"] == "completed"
        assert len(queue.effects(str(job))) == 1
    assert counted(queue, "db_errors_total", sqlstate_class="40") == 3, "each retry is counted"
    assert counted(queue, "lease_lost_total") == 0
    assert program.running()


@pytest.mark.parametrize(
    "seconds",
    [
        3,
        pytest.param(12, marks=pytest.mark.slow),
        pytest.param(35, marks=[pytest.mark.soak, pytest.mark.slow, pytest.mark.timeout(120)]),
    ],
)
def test_ends_are_tried_for_as_long_as_their_rows_are_held(queue: TestQueue, seconds: int) -> None:
    """Beyond the bounds of a lock and of a statement; the beat goes on, so nobody rescues."""
    program = queue.start()
    queue.start("--slot", "other")
    jobs = [queue.enqueue("sleep", {"seconds": 0.3}) for _ in range(3)]
    for job in jobs:
        queue.begun(job)
    with psycopg.connect(queue.url) as other:
        other.execute("select from weirkeeper.running for update")
        until(lambda: all(queue.effects(job, "end") for job in jobs), 10, "all have ended")
        pause(seconds, "the rows are held: beyond 10 s a lock is waited for no longer")
        if seconds > LOCK_SECONDS:  # or the variant tries nothing that the short one does not
            until(lambda: counted(queue, "db_errors_total", sqlstate_class="55"), 20, "one is told")
        assert not any(queue.attempts(job) for job in jobs)
    assert {queue.final(job, timeout=30)["outcome"] for job in jobs} == {"completed"}
    assert {len(queue.effects(job)) for job in jobs} == {1}
    assert program.running()


def test_a_job_that_ended_after_others_took_it_for_lost_runs_again_and_its_first_end_is_refused(
    queue: TestQueue,
) -> None:
    """As when the end cannot be written until the lease is over: a duplicate, and counted as one."""
    program = queue.start(WEIRKEEPER_CHILDREN="t=1")  # while it runs the job it claims no other
    job = queue.enqueue("sleep", {"seconds": 5.0})
    queue.begun(job)
    [epoch] = queue.ready_epochs()
    queue.start("--slot", "other")
    until(lambda: _held(queue, job, epoch), 10, "the database knows that it has begun")
    assert rescue(queue.conn, {epoch: "lease"}) == {"lease": 1}
    queue.begun(job, times=2)
    refused = until(lambda: counted(queue, "lease_lost_total"), 20, "the first end is refused")
    assert refused == 1
    assert queue.final(job)["epoch"] != epoch
    assert queue.outcomes(job) == ["rescued", "completed"]
    assert [len(queue.effects(job, what)) for what in ("begin", "end")] == [2, 2]
    assert program.running()


def _held(queue: TestQueue, job: str, epoch: int) -> bool:
    held = (
        "select 1 from weirkeeper.running where job_id = %s and epoch = %s and started_at < now()"
    )
    return queue.conn.execute(held, (job, epoch)).fetchone() is not None


def test_a_job_that_finished_after_a_rescuer_looked_ran_once_and_is_told_once(
    queue: TestQueue,
) -> None:
    """The rescuer decides from an old look; the job has ended meanwhile, in its own process."""
    notices = Notices(queue.url)
    queue.start()
    job = queue.enqueue("sleep", {"seconds": 1.0})
    queue.begun(job)
    [epoch] = queue.ready_epochs()
    until(lambda: _held(queue, job, epoch), 10, "the database knows that it has begun")
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute("update weirkeeper.process set beat_at = beat_at - interval '1 hour'")
        clock = Clock()
        beats = Beats(clock)
        assert dead_owners(queue.conn, 0, beats) == {}
        clock.now += SEEN
        dead = dead_owners(queue.conn, 0, beats)
    assert dead == {epoch: "lease"}
    end = queue.final(job)
    assert rescue(queue.conn, dead) == {"lease": 0}
    assert queue.attempts(job) == [end]
    assert (end["state"], len(queue.effects(job))) == ("completed", 1)
    assert notices.heard() == [job]
    notices.close()


def test_jobs_of_a_process_whose_row_is_gone_are_run_again(queue: TestQueue) -> None:
    program = queue.start()
    jobs = [queue.enqueue("sleep", {"seconds": 1.0}) for _ in range(3)]
    [epoch] = queue.ready_epochs()
    for job in jobs:
        queue.begun(job)
        until(lambda j=job: _held(queue, j, epoch), 10, "the database knows that it has begun")
    program.send(signal.SIGKILL)
    program.wait(30)
    queue.conn.execute("delete from weirkeeper.process")
    queue.start()
    for job in jobs:
        assert queue.final(job, timeout=30)["outcome"] == "completed"
        assert queue.outcomes(job) == ["rescued", "completed"]
        assert queue.attempts(job)[0]["state"] == "retryable"


MADE = "select pg_get_functiondef('weirkeeper.job_complete'::regproc)"
CHANGES = (
    "alter table weirkeeper.job add column planted integer",
    "alter table weirkeeper.running add column planted integer default 7",
    "alter table weirkeeper.ready alter column attempt type bigint",
    "alter table weirkeeper.job alter column max_attempts type bigint",
    "alter table weirkeeper.job drop column planted",
)


def test_the_schema_changes_while_jobs_run(queue: TestQueue) -> None:
    """Plans are thrown away, a statement may fail once for each session; no job is lost."""
    program = queue.start()
    jobs: list[str] = []
    stop = threading.Event()

    def producer() -> None:
        with psycopg.connect(queue.url, autocommit=True) as conn:
            while not stop.wait(0.005):
                row = conn.execute("select weirkeeper.enqueue('t.noop')").fetchone()
                jobs.append(str(row[0]))

    thread = threading.Thread(target=producer)
    thread.start()
    until(lambda: queue.count("attempt") > 20, 10, "statements are prepared")
    with psycopg.connect(queue.url, autocommit=True) as admin:
        admin.execute("set lock_timeout = '2s'")
        for change in CHANGES:
            before = queue.count("attempt")
            _patiently(admin, change)
            until(lambda b=before: queue.count("attempt") > b + 5, 20, f"jobs run after: {change}")
    stop.set()
    thread.join()
    for job in jobs:
        queue.final(job)
    assert all(queue.outcomes(job) == ["completed"] for job in jobs)
    failed = [line for line in program.records() if "the database fails" in line.get("message", "")]
    assert len(failed) <= len(CHANGES), failed
    assert program.running()
    inspector = PostgresInspector(queue.conn)
    assert inspector.get(jobs[-1]).state == "completed"


def _patiently(admin: psycopg.Connection, change: str) -> None:
    """As a migration does: it waits briefly for its locks, and tries again.

    A function that keeps the type of a column in a plan of its own is made anew with it.
    """
    for _ in range(20):
        try:
            with admin.transaction():
                admin.execute(change)
                [made] = admin.execute(MADE).fetchone()
                admin.execute(made)
        except psycopg.errors.LockNotAvailable:
            continue
        return
    raise AssertionError(f"never got its locks: {change}")
