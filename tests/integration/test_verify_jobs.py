"""`weirkeeper verify` and jobs: rows that disagree with their job, its end, its options."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shared.jobs.port import EnqueueOpts, Unique
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import Finish, finish
from shared.postgres.queues.promotions import expire
from tests.support.verifying import KIND, add, broken, conn_fixture, log_end, mended, owner, where

__all__ = ["conn_fixture"]


def test_a_job_that_has_ended_does_not_run(conn):
    number, epoch = add(conn), owner(conn)
    [claim] = Claims(conn, "index", epoch).claim([KIND], 1)
    log_end(conn, number)
    assert broken(conn) == [("ended_but_waits", str(number))]
    assert mended(conn) == [("ended_but_waits", str(number), "taken out")]
    assert finish(conn, epoch, [Finish(claim.job_id, claim.token)]) == 0
    assert PostgresInspector(conn).get(str(number)).state == "completed"
    assert broken(conn) == []


def test_a_job_that_was_for_later_is_not_run_before_its_time(conn):
    moment = datetime.now(UTC) + timedelta(hours=1)
    later, due = add(conn, run_at=moment), add(conn, run_at=moment)
    conn.execute("delete from weirkeeper.scheduled")
    conn.execute("update weirkeeper.job set run_at = now() - interval '1 s' where id = %s", (due,))
    assert sorted(mended(conn)) == [
        ("job_nowhere", str(later), "put off until its time"),
        ("job_nowhere", str(due), "put in line"),
    ]
    assert (where(conn, later), where(conn, due)) == (["scheduled"], ["ready"])
    told = PostgresInspector(conn).explain(str(later))
    assert told.until == moment.isoformat(timespec="milliseconds")
    assert broken(conn) == []


ASTRAY = (
    "queue = 'notify'",
    "kind = 'webhook.notice'",
    "priority = 3",
    "queue = 'x', priority = 9",
)


@pytest.mark.parametrize("wrong", ASTRAY)
@pytest.mark.parametrize("place", ["ready", "scheduled", "parked", "running"])
def test_a_row_that_says_otherwise_than_its_job_is_put_right(conn, place, wrong):
    number, epoch = add(conn, priority=1), owner(conn)
    if place == "running":
        Claims(conn, "index", epoch).claim([KIND], 1)
    elif place != "ready":
        conn.execute("delete from weirkeeper.ready")
        conn.execute("insert into weirkeeper.key values ('k', 'infinity')")
        rows = {"scheduled": "%s, now() + interval '1 h'", "parked": "%s, 'k'"}
        rest = ", 'delay'" if place == "scheduled" else ""
        conn.execute(
            f"insert into weirkeeper.{place} values"
            f" ({rows[place]}, 'index', 'corpus.index', 1, 0, 0{rest})",
            (number,),
        )
    assert broken(conn) == []
    conn.execute(f"update weirkeeper.{place} set {wrong}")
    assert broken(conn) == [("row_astray", str(number))]
    assert mended(conn) == [("row_astray", str(number), "made to agree with its job")]
    assert where(conn, number) == [place]
    look = f"select queue, kind, priority from weirkeeper.{place}"
    assert conn.execute(look).fetchone() == ("index", KIND, 1)
    if place == "ready":
        assert [c.job_id for c in Claims(conn, "index", epoch).claim([KIND], 1)] == [number]
    assert broken(conn) == []


@pytest.mark.parametrize("runs", [False, True])
def test_a_run_that_the_log_has_passed_is_counted_on(conn, runs):
    """Else its end would come before what the log says last, and the job would stand nowhere."""
    number, epoch = add(conn), owner(conn)
    claims = Claims(conn, "index", epoch)
    held = claims.claim([KIND], 1) if runs else []
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " values (%s, 7, 2, 'failed', 'retryable')",
        (number,),
    )
    assert broken(conn) == [("row_astray", str(number))]
    assert mended(conn) == [("row_astray", str(number), "made to agree with its job")]
    [claim] = held or claims.claim([KIND], 1)
    assert finish(conn, epoch, [Finish(claim.job_id, claim.token)]) == 1
    job = PostgresInspector(conn).get(str(number))
    assert (job.state, [a.run for a in job.attempts]) == ("completed", [7, 8])
    assert broken(conn) == []


@pytest.mark.parametrize("state", ["discarded", "cancelled"])
def test_a_uniqueness_that_was_to_be_given_up_is(conn, state):
    number = add(conn, unique=Unique())
    strict = Unique(
        states=("pending", "running", "retryable", "completed", "discarded", "cancelled")
    )
    keeper = int(PostgresJobs(conn).enqueue(KIND, {"n": 2}, EnqueueOpts(unique=strict)))
    conn.execute("delete from weirkeeper.ready")
    log_end(conn, number, state)
    log_end(conn, keeper, state)
    assert broken(conn) == [("unique_kept", str(number))]
    assert mended(conn) == [("unique_kept", str(number), "given up")]
    assert broken(conn) == []
    assert add(conn, unique=Unique()) != number
    assert int(PostgresJobs(conn).enqueue(KIND, {"n": 2}, EnqueueOpts(unique=strict))) == keeper


def test_a_uniqueness_that_nobody_holds_is_taken_again(conn):
    first = add(conn, unique=Unique())
    conn.execute("delete from weirkeeper.unique_key")
    [claim] = Claims(conn, "index", owner(conn)).claim([KIND], 1)
    assert broken(conn) == [("unique_lost", str(first))]
    second = add(conn, unique=Unique())
    conn.execute("delete from weirkeeper.unique_key")
    assert broken(conn) == [("unique_lost", str(first)), ("unique_lost", str(second))]
    assert mended(conn) == [("unique_lost", str(first), "holds it again")]
    assert broken(conn) == []
    assert add(conn, unique=Unique()) == first == claim.job_id


@pytest.mark.parametrize("hours", [1, -1])
def test_what_is_to_start_by_a_moment_is_reminded_of(conn, hours):
    number = add(conn, expires_at=datetime.now(UTC) + timedelta(hours=hours))
    tried = add(conn, expires_at=datetime.now(UTC) + timedelta(hours=hours))
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, started_at)"
        " values (%s, 0, 0, 'snoozed', 'pending', now())",
        (tried,),
    )
    conn.execute("delete from weirkeeper.expiry")
    assert broken(conn) == [("expiry_lost", str(number))]
    assert mended(conn) == [("expiry_lost", str(number), "will be discarded at its moment")]
    assert broken(conn) == []
    assert expire(conn, "index") == (hours < 0)
    assert (where(conn, number), where(conn, tried)) == ([] if hours < 0 else ["ready"], ["ready"])


def test_a_running_job_holds_a_place_of_its_key(conn):
    number, epoch = add(conn, concurrency_key="k"), owner(conn)
    Claims(conn, "index", epoch).claim([KIND], 1)
    conn.execute("update weirkeeper.running set key = null")
    assert broken(conn) == []  # it may have been claimed just now
    conn.execute("update weirkeeper.running set claimed_at = now() - interval '61 s'")
    assert broken(conn) == [("running_unheld", str(number))]
    assert mended(conn) == [("running_unheld", str(number), "holds its place")]
    assert conn.execute("select key from weirkeeper.running").fetchone() == ("k",)
    assert broken(conn) == []
