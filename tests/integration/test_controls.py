"""Cancel, retry, pause: from every state, each with one notice, none to a wrong place."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.jobs.port import JobFilter, Unique
from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.statements import statement
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.rescues import rescue
from tests.support import steps as how
from tests.support.bounds import at_most
from tests.support.steps import EPOCH, KIND, QUEUE, notices_fixture, steps_fixture  # noqa: F401
from tests.support.waiting import until

LATER = datetime.now(UTC) + timedelta(hours=1)


def park(steps, job):
    steps.conn.execute("insert into weirkeeper.key (name) values ('k')")
    steps.conn.execute(
        "with gone as (delete from weirkeeper.ready where job_id = %s returning *)"
        " insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)"
        " select job_id, 'k', queue, kind, priority, attempt, run from gone",
        (job,),
    )


def waiting_jobs(steps):
    """One in each place where a job can wait."""
    ready, scheduled, parked = steps.enqueue(), steps.enqueue(run_at=LATER), steps.enqueue()
    park(steps, parked)
    return ready, scheduled, parked


def test_a_waiting_job_is_cancelled_at_once_wherever_it_waits(steps, notices):
    jobs = waiting_jobs(steps)
    for job in jobs:
        assert steps.inspector.cancel(job) == "cancelled"
        assert steps.where(job) == []
        [entry] = steps.inspector.get(job).attempts
        assert (entry.outcome, entry.state, entry.cause) == ("cancelled", "cancelled", "by_hand")
        assert entry.started_at is None
    assert notices.heard() == sorted(jobs, key=int)
    assert steps.claim() == []


def test_what_has_ended_stays_as_it_is(steps, notices):
    jobs = {
        steps.run(): "completed",
        steps.run(**how.SPENT): "discarded",
        steps.run(**how.DISCARDED): "discarded",
    }
    cancelled = steps.enqueue()
    steps.inspector.cancel(cancelled)
    before = notices.heard()
    for job, state in {**jobs, cancelled: "cancelled"}.items():
        assert steps.inspector.cancel(job) == state
    assert notices.heard() == before


@pytest.mark.parametrize(
    ("end", "state", "outcome"),
    [
        ({}, "completed", "completed"),
        ({"result": "[1]"}, "completed", "completed"),
        (how.DISCARDED, "discarded", "discarded"),
        (how.SPENT, "discarded", "failed"),
        (how.FAILED, "cancelled", "failed"),
        (how.SNOOZED, "cancelled", "cancelled"),
        (how.INTERRUPTED, "cancelled", "cancelled"),
        ({"outcome": "cancelled", "state": "cancelled", "spent": False}, "cancelled", "cancelled"),
    ],
)
def test_a_running_job_never_waits_again_once_its_end_was_asked_for(
    steps, notices, end, state, outcome
):
    job = steps.enqueue()
    [claim] = steps.claim()
    assert steps.inspector.cancel(job) == "running"
    assert steps.inspector.cancel(job) == "running", "asking twice changes nothing"
    steps.finish(claim, **end)
    assert steps.where(job) == []
    assert steps.log(job) == [(outcome, state)]
    assert notices.heard() == [job]


def test_a_claim_given_back_after_its_end_was_asked_for_ends(steps, notices):
    job, other = steps.enqueue(), steps.enqueue()
    claims = Claims(steps.conn, QUEUE, EPOCH)
    taken = claims.claim([KIND], 2)
    steps.inspector.cancel(job)
    assert claims.give_back(taken) == 2
    assert (steps.where(job), steps.where(other)) == ([], ["ready"])
    assert steps.log(job) == [("cancelled", "cancelled")]
    assert notices.heard() == [job]


def test_a_job_of_a_dead_owner_is_cancelled_by_who_rescues_it(steps, notices):
    job, other = steps.enqueue(), steps.enqueue()
    steps.claim()
    steps.inspector.cancel(job)
    assert rescue(steps.conn, {EPOCH: "dead"}) == {"dead": 2}
    assert steps.log(job) == [("rescued", "cancelled")]
    assert steps.where(other) == ["ready"]
    assert notices.heard() == [job]


def test_the_owner_is_told(steps):
    steps.enqueue()
    [claim] = steps.claim()
    number = steps.one("select no from weirkeeper.queue where name = %s", QUEUE)
    with psycopg.connect(steps.url, autocommit=True) as ear:
        ear.execute(f"listen weirkeeper_queue_{number}")
        steps.inspector.cancel(str(claim.job_id))
        ear.execute("select 1")
        assert [n.payload for n in ear.notifies(timeout=0)] == ["cancel"]


@pytest.mark.parametrize("job_id", ["1", "999999999", "x", ""])
def test_no_such_job(steps, job_id):
    for step in (steps.inspector.cancel, steps.inspector.retry, steps.inspector.explain):
        with pytest.raises(NotFound):
            step(job_id)


def test_cancelling_while_it_is_rolled_back_did_nothing(steps, notices):
    job = steps.enqueue()
    with psycopg.connect(steps.url) as other:
        other.execute("select * from weirkeeper.cancel_jobs(array[%s::bigint])", (job,))
        other.rollback()
    assert steps.where(job) == ["ready"]
    assert notices.heard() == []


@pytest.mark.parametrize("end", [how.SPENT, how.DISCARDED])
def test_a_discarded_job_is_tried_once_more(steps, end):
    job = steps.run(**end)
    assert steps.inspector.retry(job) == "retryable"
    assert steps.where(job) == ["ready"]
    assert steps.inspector.list(JobFilter(state="discarded")) == []
    assert [j.id for j in steps.inspector.list(JobFilter(state="retryable"))] == [job]
    entry = steps.inspector.get(job).attempts[0]
    assert (entry.outcome, entry.state) == (end["outcome"], "retryable")
    assert entry.evidence["was"] == "discarded"
    [claim] = steps.claim()
    assert (claim.run, claim.attempt) == (2, 1)
    steps.finish(claim)
    assert steps.state(job) == "completed"


def test_a_cancelled_job_waits_again_as_if_it_had_never_been_tried(steps):
    job = steps.enqueue()
    steps.inspector.cancel(job)
    assert steps.inspector.retry(job) == "pending"
    [claim] = steps.claim()
    assert (claim.run, claim.attempt) == (2, 0)
    steps.finish(claim, **how.FAILED)
    assert steps.log(job) == [("cancelled", "pending"), ("failed", "retryable")]


@pytest.mark.parametrize(("end", "state"), [(how.FAILED, "retryable"), (how.SNOOZED, "pending")])
def test_a_scheduled_job_runs_now(steps, end, state):
    job = steps.run(**end)
    assert steps.where(job) == ["scheduled"]
    assert steps.inspector.retry(job) == state
    assert steps.where(job) == ["ready"]


def test_what_waits_or_runs_already_is_left_as_it_is(steps):
    job = steps.enqueue()
    assert steps.inspector.retry(job) == "pending"
    [claim] = steps.claim()
    assert steps.inspector.retry(job) == "running"
    steps.finish(claim)
    with pytest.raises(Conflict, match="completed one") as refused:
        steps.inspector.retry(job)
    assert refused.value.job_id is None


# ── a unique job ──────────────────────────────────────────────────────────────────────────────────


def unique(steps, n=1):
    return steps.enqueue(args={"n": n}, unique=Unique())


def test_a_retry_never_makes_a_second_one_of_a_unique_job(steps):
    first = unique(steps)
    steps.inspector.cancel(first)
    second = unique(steps)
    assert second != first, "a cancel releases the uniqueness"
    with pytest.raises(Conflict, match=f"got job {second}") as refused:
        steps.inspector.retry(first)
    assert refused.value.job_id == second
    assert (steps.state(first), steps.where(second)) == ("cancelled", ["ready"])
    steps.inspector.cancel(second)
    assert steps.inspector.retry(first) == "pending"
    assert unique(steps) == first, "a retry takes the uniqueness again"


@pytest.mark.parametrize("end", [how.SPENT, how.DISCARDED])
def test_a_discard_releases_the_uniqueness(steps, end):
    first = unique(steps)
    [claim] = steps.claim()
    steps.finish(claim, **end)
    assert unique(steps) != first


def test_a_conflict_in_a_batch_leaves_the_others(steps):
    jobs = [unique(steps, n) for n in range(4)]
    assert steps.inspector.cancel_many(JobFilter(kind=KIND)) == 4
    again = unique(steps, 2)
    assert steps.inspector.retry_many(JobFilter(kind=KIND)) == 3
    assert [steps.state(job) for job in jobs] == ["pending", "pending", "cancelled", "pending"]
    assert {c.job_id for c in steps.claim()} == {int(j) for j in (*jobs[:2], jobs[3], again)}


def test_two_of_one_key_in_one_batch_are_one(steps):
    first = unique(steps)
    steps.inspector.cancel(first)
    second = unique(steps)
    steps.inspector.cancel(second)
    assert steps.inspector.retry_many(JobFilter(kind=KIND)) == 1
    assert sorted((steps.state(first), steps.state(second))) == ["cancelled", "pending"]


# ── many ───────────────────────────────────────────────────────────────────────────────────────


def test_many_are_moved_in_batches_and_the_number_is_told(steps, notices, monkeypatch):
    monkeypatch.setattr("shared.postgres.queues.controls.BATCH", 10)
    ids = [steps.enqueue(tags=("mine",)) for _ in range(25)]
    others = [steps.enqueue() for _ in range(3)]
    told: list[int] = []
    assert steps.inspector.cancel_many(JobFilter(tag="mine"), told=told.append) == 25
    assert told[:3] == [10, 20, 25]
    assert notices.heard() == sorted(ids, key=int)
    assert {c.job_id for c in steps.claim()} == {int(job) for job in others}
    assert steps.inspector.cancel_many(JobFilter(tag="mine")) == 0
    assert steps.inspector.retry_many(JobFilter(tag="mine")) == 25
    assert len(steps.claim()) == 25


def test_states_that_cannot_move_move_nothing(steps):
    job = steps.run()
    assert steps.inspector.retry_many(JobFilter(state="completed")) == 0
    assert steps.inspector.cancel_many(JobFilter(state="completed")) == 0
    assert steps.inspector.retry_many(JobFilter(state="pending")) == 0
    assert steps.state(job) == "completed"


# ── whoever waits is told of every way to end ─────────────────────────────────────────────────────


LISTENS = (
    "select count(*) from pg_stat_activity where datname = current_database()"
    " and application_name = 'weirkeeper test listen'"
)


def _cancelled(steps):
    job = steps.enqueue()
    return job, lambda: steps.inspector.cancel(job)


def _discarded(steps):
    job = steps.enqueue(max_attempts=1)
    assert len(steps.claim()) == 1
    steps.conn.execute("update weirkeeper.running set started_at = now()")
    return job, lambda: rescue(steps.conn, {EPOCH: "dead"})


@pytest.mark.parametrize(
    ("end", "state"),
    [(_cancelled, "cancelled"), (_discarded, "discarded")],
    ids=["cancel", "rescue"],
)
def test_who_waits_is_told_of_a_cancel_and_of_a_rescue_that_discards(
    steps, monkeypatch, end, state
):
    """By the notice: the poll is out of the way."""
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    job, act = end(steps)
    answers = []
    with PostgresWaits(steps.url, "test") as waits:
        thread = threading.Thread(
            target=lambda: answers.append((waits.wait(job, 50).state, time.monotonic()))
        )
        thread.start()
        until(lambda: steps.one(LISTENS), 10, "somebody listens")
        acted = time.monotonic()
        act()
        thread.join(60)
    [(told, at)] = answers
    assert told == state
    assert at - acted < at_most(1, busy=20), "long before its bound"


# ── pause ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lane", [{"queue": QUEUE}, {"kind": KIND}])
def test_a_paused_lane_is_skipped_and_no_row_moves(steps, lane):
    jobs = [int(steps.enqueue()) for _ in range(3)]
    other = int(steps.enqueue("t.sleep"))
    place = "select array_agg(ctid::text order by seq) from weirkeeper.ready"
    before = steps.one(place)
    claims = Claims(steps.conn, QUEUE, EPOCH)
    steps.inspector.pause(**lane)
    steps.inspector.pause(**lane)  # again: nothing
    taken = claims.claim([KIND, "t.sleep"], 10)
    assert [c.job_id for c in taken] == ([] if "queue" in lane else [other])
    assert [o.paused for o in steps.inspector.overview(KIND)] == [True]
    assert [o.paused for o in steps.inspector.overview("t.sleep")] == ["queue" in lane]
    claims.give_back(taken)
    if "queue" in lane:
        assert steps.one(place) == before
    steps.inspector.resume(**lane)
    steps.inspector.resume(**lane)
    assert {c.job_id for c in claims.claim([KIND, "t.sleep"], 10)} == {*jobs, other}


def test_a_pause_is_one_of_both_and_of_something_declared(steps):
    for lane in ({}, {"queue": QUEUE, "kind": KIND}):
        with pytest.raises(InvalidArguments, match="name exactly one"):
            steps.inspector.pause(**lane)
    for lane in ({"queue": "no_such"}, {"kind": "no.such"}):
        with pytest.raises(NotFound, match="expected a declared one"):
            steps.inspector.pause(**lane)


def test_what_is_paused_is_no_stuck_claim(steps):
    steps.enqueue()
    params = {"queue": QUEUE, "kinds": [KIND]}
    look = statement("queues/oldest")
    assert steps.conn.execute(look, params).fetchone()[0] is not None
    steps.inspector.pause(kind=KIND)
    assert steps.conn.execute(look, params).fetchone()[0] is None


def test_what_another_transaction_has_locked_is_no_stuck_claim(steps, database_url):
    job = steps.enqueue()
    params = {"queue": QUEUE, "kinds": [KIND]}
    look, any_look = statement("queues/oldest_free"), statement("queues/oldest")
    with psycopg.connect(database_url) as other:
        other.execute("select from weirkeeper.ready where job_id = %s for update", (job,))
        assert steps.conn.execute(look, params).fetchone()[0] is None
        assert steps.conn.execute(any_look, params).fetchone()[0] is not None
        steps.enqueue()
        assert steps.conn.execute(look, params).fetchone()[0] is not None
    assert steps.conn.execute(look, params).fetchone()[0] is not None
