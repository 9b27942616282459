"""Jobs that run without a row: the process that runs them takes them back, or stops them."""

from __future__ import annotations

from tests.support.bounds import at_most
from tests.support.queue import TestQueue, alive, queue
from tests.support.waiting import until

__all__ = ["queue"]

UNCLAIMED = """
with lost as (delete from weirkeeper.running where job_id = %(job)s returning *)
insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run)
select queue, kind, priority, job_id, attempt, run - 1 from lost
"""
REMOVED = "delete from weirkeeper.running where job_id = %(job)s"


def lose(queue: TestQueue, job: str, how: str) -> None:
    """Lose a job's row and the sessions of its process at once, as a crash of the server does."""
    with queue.conn.transaction():
        queue.conn.execute(how, {"job": job})
        ended = queue.conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name in ('weirkeeper t work', 'weirkeeper t wakes')"
            " and datname = current_database()"
        )
        assert len(ended.fetchall()) == 2


def test_a_job_whose_claim_was_lost_goes_on_and_its_end_counts(queue: TestQueue) -> None:
    program = queue.start()
    job = queue.enqueue("sleep", {"seconds": 3})
    queue.begun(job)
    lose(queue, job, UNCLAIMED)
    until(lambda: queue.where(job) == ["running"], 10, "its row is back")
    assert queue.outcomes(job) == []
    last = queue.final(job)
    assert (last["outcome"], last["run"], last["attempt"]) == ("completed", 1, 1)
    assert len(queue.effects(job)) == len(queue.effects(job, "end")) == 1
    assert "whose claims the database had lost" in program.text()


def test_a_job_whose_row_is_gone_is_stopped_and_its_end_dropped(queue: TestQueue) -> None:
    program = queue.start(WEIRKEEPER_GRACE_SECONDS="0.5")
    job = queue.enqueue("sleep", {"seconds": 60}, timeout=90)
    child = queue.begun(job)["pid"]
    lose(queue, job, REMOVED)
    until(lambda: not alive(child), at_most(8, busy=30), "its child is gone")
    until(lambda: "came too late" in program.text(), 10, "its end is fenced")
    assert (queue.attempts(job), queue.where(job)) == ([], [])
    assert f"jobs {job} have no row here any more" in program.text()
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    assert program.running()
