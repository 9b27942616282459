"""Clauses 19 to 22, 30 and 32: stepping in by hand, and why a job stands where it stands."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.errors import Conflict, InvalidArguments, NotFound
from tests.conformance.engines import Bench
from tests.support.waiting import until
from weirkeeper import JobFilter, Unique


def test_19_manual_retry_of_an_exhausted_job_completes(bench: Bench) -> None:
    job = bench.enqueue("fail", {"times": 3})
    assert bench.final(job).state == "discarded"
    assert bench.inspector.retry(job) == "retryable"
    done = bench.final(job)
    assert (done.state, len(bench.errors(job))) == ("completed", 3)
    with pytest.raises(Conflict, match="completed"):
        bench.inspector.retry(job)


def test_20_manual_retry_of_a_handlers_discard_completes(bench: Bench) -> None:
    job = bench.enqueue("answer", {"answer": "discard", "times": 1})
    assert bench.final(job).state == "discarded"
    bench.inspector.retry(job)
    assert bench.final(job).state == "completed"


def test_20_manual_retry_of_a_scheduled_job_runs_it_now(bench: Bench) -> None:
    job = bench.enqueue("ok", run_at=bench.engine.now() + timedelta(hours=1))
    assert bench.inspector.retry(job) == "pending"
    assert bench.final(job).state == "completed"


def test_20_manual_retry_names_who_holds_the_uniqueness(bench: Bench) -> None:
    later = bench.engine.now() + timedelta(hours=1)
    first = bench.enqueue("ok", {"u": "retry"}, unique=Unique(), run_at=later)
    bench.inspector.cancel(first)
    second = bench.enqueue("ok", {"u": "retry"}, unique=Unique(), run_at=later)
    with pytest.raises(Conflict) as error:
        bench.inspector.retry(first)
    assert error.value.job_id == second
    assert bench.state(first) == "cancelled"
    assert bench.inspector.retry_many(JobFilter(kind="c.ok", state="cancelled", tag="no")) == 0
    bench.inspector.cancel(second)
    bench.inspector.retry(first)
    assert bench.final(first).state == "completed"


def test_21_a_cancelled_future_job_never_runs(bench: Bench) -> None:
    soon = bench.engine.now() + timedelta(seconds=0.5)
    job = bench.enqueue("ok", run_at=soon)
    sentinel = bench.enqueue("ok", run_at=soon + timedelta(seconds=0.1))
    assert bench.inspector.cancel(job) == "cancelled"
    assert bench.final(sentinel).state == "completed"
    assert bench.state(job) == "cancelled"
    assert not bench.effects(job)
    assert bench.inspector.cancel(job) == "cancelled"
    assert bench.inspector.cancel(sentinel) == "completed"


def test_21_what_does_not_exist_cannot_be_looked_at(bench: Bench) -> None:
    for act in (
        bench.inspector.get,
        bench.inspector.explain,
        bench.inspector.retry,
        bench.inspector.cancel,
    ):
        for nothing in ("9999999999", "x", "", "-1", "01", "9" * 30, "²", 0, -1, 2**63):
            with pytest.raises(NotFound):
                act(nothing)
        for strange in (None, True, 1.0, b"1"):
            with pytest.raises(InvalidArguments, match="give what enqueue returned"):
                act(strange)


def test_21_an_id_may_be_the_number_that_sql_returns(bench: Bench) -> None:
    job = bench.final(bench.enqueue("ok")).id
    assert bench.inspector.get(int(job)).id == job
    assert bench.inspector.explain(int(job)).state == bench.inspector.cancel(int(job))
    assert bench.waits.wait(int(job), 0).finished


def test_22_a_blocked_queue_leaves_others_alone(bench: Bench) -> None:
    if bench.name == "memory":
        with bench.paused(queue="blocked"):
            stuck = [bench.enqueue("stuck", {"seconds": 0}) for _ in range(16)]
            assert bench.final(bench.enqueue("ok")).state == "completed"
            assert {bench.state(job) for job in stuck} == {"pending"}
        return
    with bench.held("stuck"):
        stuck = [bench.enqueue("stuck", {"seconds": 0}) for _ in range(15)]
        for _ in range(5):
            assert bench.final(bench.enqueue("ok")).state == "completed"
        assert {bench.state(job) for job in stuck} <= {"pending", "running"}
        assert not any(bench.effects(job) for job in stuck)
    for job in stuck:
        bench.final(job)


def test_30_a_cancel_of_a_running_job_is_told_to_it(bench: Bench) -> None:
    """That its child is stopped is the runtime's part."""
    with bench.held() as (job, _):
        assert bench.inspector.cancel(job) == "running"
        explained = bench.inspector.explain(job)
        assert explained.where in ("running", "ended")
    assert bench.final(job).state in ("cancelled", "completed")


@pytest.mark.parametrize("what", [{"kind": "c.ordered"}, {"queue": "one"}])
def test_32_what_is_paused_waits_and_resumes(bench: Bench, what: dict) -> None:
    with bench.paused(**what), bench.paused(**what):  # twice is once
        job = bench.enqueue("ordered")
        assert bench.final(bench.enqueue("ok")).state == "completed"
        bench.engine.pass_time(0.3)
        assert bench.state(job) == "pending"
        explained = bench.inspector.explain(job)
        assert (explained.where, explained.waits_for) == ("ready", "resume")
        assert "paused" in explained.sentence
    assert bench.final(job).state == "completed"


def test_32_only_what_is_declared_can_be_paused(bench: Bench) -> None:
    for act in (bench.inspector.pause, bench.inspector.resume):
        with pytest.raises(NotFound):
            act(kind="no.such.kind")
        with pytest.raises(NotFound):
            act(queue="no_such_queue")
        with pytest.raises(InvalidArguments):
            act()
        with pytest.raises(InvalidArguments):
            act(queue="c", kind="c.ok")


def test_32_many_are_cancelled_and_retried_by_filter(bench: Bench) -> None:
    later = bench.engine.now() + timedelta(hours=1)
    some = [bench.enqueue("many", run_at=later, tags=("many",)) for _ in range(3)]
    other = bench.enqueue("many", run_at=later)
    wanted = JobFilter(kind="c.many", tag="many")
    assert bench.inspector.cancel_many(wanted) == 3
    assert bench.inspector.cancel_many(wanted) == 0
    assert bench.state(other) == "pending"
    assert bench.inspector.retry_many(wanted) == 3
    assert {bench.final(job).state for job in some} == {"completed"}
    assert bench.inspector.retry_many(wanted) == 0


def test_32_explain_tells_where_and_until_when(bench: Bench) -> None:
    later = bench.engine.now() + timedelta(hours=1)
    job = bench.enqueue("ok", run_at=later)
    told = bench.inspector.explain(job)
    until_when = later.isoformat(timespec="milliseconds")
    assert (told.where, told.waits_for, told.until) == ("scheduled", "time", until_when)
    assert until_when in told.sentence
    bench.inspector.cancel(job)
    told = bench.inspector.explain(job)
    assert (told.where, told.state, told.waits_for) == ("ended", "cancelled", None)
    with bench.held() as (running, _):
        explain = bench.inspector.explain
        # That its child has begun is written a moment later.
        until(lambda: explain(running).waits_for == "its end", 10, "it is known to have begun")
        assert explain(running).where == "running"


def test_32_explain_counts_who_really_goes_first(bench: Bench) -> None:
    """Neither jobs of a paused kind nor, where owners take turns, those of other owners."""
    with bench.paused(queue="one"):
        urgent = bench.enqueue("ordered", priority=1)
        many = [bench.enqueue("fair", owner_id="ada") for _ in range(3)]
        other = bench.enqueue("fair", owner_id="eve")

        def ahead(job: str) -> int:
            found: int = bench.inspector.explain(job).facts["ahead"]
            return found

        assert [ahead(job) for job in (urgent, *many, other)] == [0, 1, 2, 3, 1]
        with bench.paused(kind="c.ordered"):
            assert [ahead(job) for job in (*many, other)] == [0, 1, 2, 0]
    assert bench.final(other).state == "completed"


def test_32_explain_tells_when_a_job_expires(bench: Bench) -> None:
    explain, later = bench.inspector.explain, bench.engine.now() + timedelta(hours=1)
    moment = later.isoformat(timespec="milliseconds")
    waiting = bench.enqueue("unclaimed", expires_at=later)
    assert f"If it has not started by {moment}, it is discarded." in explain(waiting).sentence
    late = bench.enqueue("unclaimed", expires_at=bench.engine.now() - timedelta(hours=1))
    assert explain(late).waits_for == "its end"
    assert "before it was tried" in explain(late).sentence
    # Once it was tried, that it is late does not matter any more.
    past = bench.engine.now() + timedelta(seconds=0.3)
    tried = bench.enqueue("answer", {"answer": "snooze", "seconds": 3600}, expires_at=past)
    bench.engine.until(lambda: bench.effects(tried), "it was tried")
    bench.engine.until(lambda: explain(tried).where == "scheduled", "it waits again")
    assert "expired" not in explain(tried).facts
    assert "discarded" not in explain(tried).sentence
    for job in (waiting, late, tried):
        bench.inspector.cancel(job)
