"""The overview of kinds, and the explanation of one job, from every place where it can be."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from shared.postgres.driver.statements import statement
from tests.support.steps import (
    DISCARDED,
    EPOCH,
    FAILED,
    SNOOZED,
    SPENT,
    fill,
    steps_fixture,  # noqa: F401
)


def test_the_overview_counts_every_state_and_lists_what_never_ran(steps):
    states = ("completed", {}), ("discarded", SPENT), ("retryable", FAILED), ("pending", SNOOZED)
    for _, end in states:
        steps.run(**end)
    cancelled = steps.enqueue()
    steps.inspector.cancel(cancelled)
    steps.enqueue()
    steps.claim()
    steps.enqueue()
    one, *_ = steps.inspector.overview("t.ok")
    assert one.counts == {
        "pending": 2, "running": 1, "retryable": 1, "completed": 1, "discarded": 1, "cancelled": 1,
    }  # fmt: skip
    assert (one.kind, one.queue, one.paused) == ("t.ok", "t", False)
    assert one.oldest_pending_age is not None
    assert 0 <= one.oldest_pending_age < 30
    everyone = steps.inspector.overview()
    assert [o.kind for o in everyone] == sorted(o.kind for o in everyone)
    never = next(o for o in everyone if o.kind == "t.die")
    assert (set(never.counts.values()), never.oldest_pending_age) == ({0}, None)
    assert steps.inspector.overview("no.such") == []


def test_what_was_retried_counts_where_it_is(steps):
    job = steps.run(**SPENT)
    steps.inspector.retry(job)
    [one] = steps.inspector.overview("t.ok")
    assert (one.counts["discarded"], one.counts["retryable"]) == (0, 1)


def test_counts_stop_at_their_cap(steps, monkeypatch):
    monkeypatch.setattr("shared.postgres.inspection.overview.CAP", 5)
    fill(steps, 30)
    [one] = steps.inspector.overview("t.ok")
    assert (one.counts["pending"], one.counts["discarded"]) == (5, 5)


def test_the_oldest_that_may_run_is_told(steps):
    steps.enqueue(run_at=datetime.now(UTC) + timedelta(hours=1))
    assert steps.inspector.overview("t.ok")[0].oldest_pending_age is None
    steps.enqueue()
    steps.conn.execute("update weirkeeper.ready set ready_at = now() - interval '90 s'")
    steps.enqueue()
    assert 89 < steps.inspector.overview("t.ok")[0].oldest_pending_age < 120


# ── explain: facts from every place ────────────────────────────────────────────────────────────


def life(steps, phase="ready", beat="0 s"):
    """A process of the queue that knows the kind, under the epoch that claims."""
    steps.conn.execute(
        "insert into weirkeeper.process (epoch, role, slot, queue, host, boot_id, pid_namespace,"
        " pid, pid_started, version, phase, connections, children, kinds, beat_at)"
        " overriding system value values (%s, 'queue', 't', 't', 'here', 'b', 1, 12, 1, '0', %s,"
        " 1, 4, '{t.ok}', clock_timestamp() - %s::interval)",
        (EPOCH, phase, beat),
    )


def test_explained_in_line(steps):
    life(steps)
    jobs = [steps.enqueue() for _ in range(3)]
    first = steps.enqueue(priority=1)
    found = steps.inspector.explain(jobs[2])
    assert (found.where, found.state, found.waits_for) == ("ready", "pending", "a child")
    assert (found.facts["ahead"], found.facts["children"], found.facts["busy"]) == (3, 4, 0)
    assert "3 jobs are before it, and 0 of 4 children" in found.sentence
    assert "a child is free for it" in steps.inspector.explain(first).sentence
    steps.inspector.pause(queue="t")
    assert "queue t has been paused since" in steps.inspector.explain(first).sentence


@pytest.mark.parametrize(("phase", "beat"), [("draining", "0 s"), ("ready", "20 s"), (None, "")])
def test_explained_without_a_process(steps, phase, beat):
    if phase:
        life(steps, phase, beat)
    assert steps.inspector.explain(steps.enqueue()).waits_for == "a process"


def test_explained_later(steps):
    life(steps)
    job = steps.enqueue(run_at=datetime(2100, 1, 1, tzinfo=UTC))
    found = steps.inspector.explain(job)
    assert (found.waits_for, found.until) == ("time", "2100-01-01T00:00:00.000+00:00")
    failed, snoozed = steps.run(**FAILED), steps.run(**SNOOZED)
    assert steps.inspector.explain(failed).waits_for == "retry"
    assert "Attempt 1 of 10 failed (no)" in steps.inspector.explain(failed).sentence
    assert steps.inspector.explain(snoozed).waits_for == "snooze"


@pytest.mark.parametrize(
    ("phase", "beat", "waits_for"),
    [("ready", "0 s", "a child"), ("ready", "20 s", "rescue"), ("stopped", "0 s", "rescue"),
     (None, "", "rescue")],
)  # fmt: skip
def test_explained_while_a_process_holds_it(steps, phase, beat, waits_for):
    if phase:
        life(steps, phase, beat)
    job = steps.enqueue()
    steps.claim()
    found = steps.inspector.explain(job)
    assert (found.where, found.state, found.waits_for) == ("running", "running", waits_for)


def test_explained_while_it_runs_and_while_it_is_stopped(steps):
    life(steps)
    job = steps.run(**FAILED)
    steps.inspector.retry(job)
    [claim] = steps.claim()
    assert steps.inspector.explain(job).waits_for == "a child", "the last attempt's start is not it"
    steps.conn.execute("update weirkeeper.running set started_at = now()")
    found = steps.inspector.explain(job)
    assert "process t (pid 12 on here), attempt 2 of 10" in found.sentence
    assert found.until == found.facts["deadline"]
    steps.inspector.cancel(job)
    assert "is stopping it" in steps.inspector.explain(job).sentence
    steps.finish(
        claim, outcome="cancelled", state="cancelled", started_at=datetime.now(UTC).timestamp()
    )
    assert "cancelled by hand at" in steps.inspector.explain(job).sentence
    assert steps.inspector.explain(job).waits_for is None


def test_explained_at_its_end(steps):
    for end, said in (
        ({}, "It completed at"),
        (SPENT, "the last of 1 attempts failed: no."),
        (DISCARDED, "not tried again: not wanted."),
    ):
        found = steps.inspector.explain(steps.run(**end))
        assert found.where == "ended"
        assert said in found.sentence


@pytest.mark.parametrize("name", ["overview", "explain"])
def test_a_long_line_is_never_read_whole(steps, name):
    fill(steps, 3000)
    job = steps.enqueue()
    steps.conn.execute("analyze")
    params = {"kind": None, "cap": 100, "id": job, "many": 100}
    with steps.conn.transaction():
        steps.conn.execute(statement("inspector/bound"))
        rows = steps.conn.execute(
            "explain (analyze, timing off, costs off) " + statement(f"inspector/{name}"), params
        )
        plan = "\n".join(row[0] for row in rows)
    for table in ("job", "ready", "attempt"):
        assert f"Seq Scan on {table} " not in plan
    most = max(int(n) for n in re.findall(r"on (?:ready|job|attempt) .*rows=(\d+)", plan))
    assert most <= 100, plan


def test_jobs_of_other_kinds_are_before_it_only_when_their_priority_is_first(steps):
    life(steps)
    for priority in (1, 2, 2, 3):
        steps.enqueue("t.sleep", {"seconds": 0}, priority=priority)
    steps.enqueue()
    last = steps.enqueue()
    assert steps.inspector.explain(last).facts["ahead"] == 2
    steps.inspector.pause(kind="t.sleep")
    assert steps.inspector.explain(last).facts["ahead"] == 1, "those of a paused kind start nothing"


def test_a_long_line_of_other_owners_is_not_read(steps):
    life(steps)
    fill(steps, 3000)
    steps.conn.execute("update weirkeeper.ready set owner_id = 'ada'")
    steps.conn.execute("update weirkeeper.kind set fair = true where name = 't.ok'")
    jobs = [steps.enqueue(owner_id="eve") for _ in range(3)]
    steps.conn.execute("analyze")
    assert [steps.inspector.explain(job).facts["ahead"] for job in jobs] == [0, 1, 2]
    with steps.conn.transaction():
        steps.conn.execute(statement("inspector/bound"))
        rows = steps.conn.execute(
            "explain (analyze, timing off, costs off) " + statement("inspector/explain"),
            {"id": jobs[2], "many": 100},
        )
        plan = "\n".join(row[0] for row in rows)
    assert "Index Only Scan using ready_owner" in plan or "Index Scan using ready_owner" in plan
    assert max(int(n) for n in re.findall(r"on ready .*rows=(\d+)", plan)) <= 3, plan
