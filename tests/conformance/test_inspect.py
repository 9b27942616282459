"""Clauses 13 to 22 and 30 to 32: waiting, looking, and stepping in by hand."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

import pytest

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.jobs.states import STATES
from shared.postgres import waits
from tests.conformance.engines import Bench, ids
from tests.support.waiting import until
from weirkeeper import JobFilter, Unique


def test_13_wait_says_no_before_the_end_then_completed(bench: Bench) -> None:
    with bench.held() as (job, _):
        before = bench.waits.wait(job, 0.1)
        assert (before.state, before.finished) == ("running", False)
    after = bench.waits.wait(job, 10)
    assert (after.state, after.finished) == ("completed", True)
    told = bench.enqueue("ok", {"result": {"a": [1, None]}})
    bench.final(told)
    assert bench.waits.wait(told, 0).result == {"a": [1, None]}


def test_13_waiting_for_what_does_not_exist_is_an_error(bench: Bench) -> None:
    for nothing in ("9999999999", "x", "-1", "9" * 30, "²"):
        with pytest.raises(NotFound):
            bench.waits.wait(nothing, 1)


def test_14_the_65th_waiter_is_answered_at_once(bench: Bench) -> None:
    job = bench.enqueue("unclaimed", run_at=bench.engine.now() + timedelta(hours=1))
    answers: list[bool] = []

    def wait() -> None:
        answers.append(bench.waits.wait(job, 20).finished)

    threads = [threading.Thread(target=wait) for _ in range(64)]
    for thread in threads:
        thread.start()
    until(lambda: _waiting(bench) == 64, 10, "64 callers wait")
    began = time.monotonic()
    assert not bench.waits.wait(job, 20).finished
    assert time.monotonic() - began < 0.2
    bench.inspector.cancel(job)
    for thread in threads:
        thread.join(10)
    assert answers == [True] * 64


def test_15_list_by_kind_and_state(bench: Bench) -> None:
    done = bench.enqueue("listed", owner_id="me", tags=("red", "blue"))
    bench.final(done)
    later = bench.engine.now() + timedelta(hours=1)
    waiting = [bench.enqueue("listed", run_at=later, tags=("red",)) for _ in range(5)]
    kind = JobFilter(kind="c.listed")
    newest_first = [*reversed([done, *waiting])]
    assert ids(bench.inspector.list(kind)) == newest_first
    assert ids(bench.inspector.list(JobFilter(kind="c.listed", state="completed"))) == [done]
    pending = JobFilter(kind="c.listed", state="pending")
    assert ids(bench.inspector.list(pending)) == [*reversed(waiting)]
    assert bench.inspector.list(JobFilter(kind="c.listed", state="running")) == []
    assert ids(bench.inspector.list(JobFilter(kind="c.listed", tag="blue"))) == [done]
    assert ids(bench.inspector.list(JobFilter(kind="c.listed", owner_id="me"))) == [done]
    assert bench.inspector.list(JobFilter(kind="c.listed", queue="one")) == []
    pages, before = [], None
    while page := bench.inspector.list(kind, limit=2, before=before):
        pages += ids(page)
        before = page[-1].id
    assert pages == newest_first
    [job] = bench.inspector.list(JobFilter(kind="c.listed", state="completed"))
    assert (job.args, job.attempts, job.owner_id, [*job.tags]) == (None, (), "me", ["red", "blue"])
    with pytest.raises(InvalidArguments, match="state"):
        bench.inspector.list(JobFilter(state="done"))


def test_16_list_by_args_contained_newest_first(bench: Bench) -> None:
    first, second, third = (
        bench.enqueue("searched", args)
        for args in (
            {"order": {"id": 7, "of": "eve"}, "lines": [1, 2]},
            {"order": {"id": 7}, "lines": [3]},
            {"order": {"id": 8}, "lines": [{"sku": "a", "n": 1}]},
        )
    )

    def found(**args: object) -> list[str]:
        return ids(bench.inspector.list(JobFilter(kind="c.searched", args=args)))

    assert found(order={"id": 7}) == [second, first]
    assert found(order={"id": 7, "of": "eve"}) == [first]
    assert found(lines=[2]) == [first]
    assert found(lines=[{"sku": "a"}]) == [third]
    assert found(order={"id": 7}, lines=[3]) == [second]
    assert found(order={"id": "7"}) == []
    for wanted in (
        JobFilter(kind="c.searched", args={"elsewhere": 1}),
        JobFilter(kind="c.ok", args={"order": 1}),
        JobFilter(args={"order": 1}),
    ):
        with pytest.raises(InvalidArguments):
            bench.inspector.list(wanted)


def test_17_overview_counts_and_tells_the_oldest(bench: Bench) -> None:
    bench.final(bench.enqueue("counted"))
    later = bench.engine.now() + timedelta(hours=1)
    cancelled = bench.enqueue("counted", run_at=later)
    bench.inspector.cancel(cancelled)
    with bench.paused(kind="c.counted"):
        bench.enqueue("counted")
        bench.engine.pass_time(0.3)
        bench.enqueue("counted")
        bench.enqueue("counted", run_at=later)
        [seen] = bench.inspector.overview("c.counted")
    assert (seen.kind, seen.queue, seen.paused) == ("c.counted", "c", True)
    expected = dict.fromkeys(STATES, 0) | {"pending": 3, "completed": 1, "cancelled": 1}
    assert dict(seen.counts) == expected
    assert seen.oldest_pending_age is not None
    assert 0.3 <= seen.oldest_pending_age < 10
    assert bench.inspector.overview("no.such.kind") == []


def test_18_overview_lists_kinds_that_never_ran(bench: Bench) -> None:
    overview = {seen.kind: seen for seen in bench.inspector.overview()}
    assert list(overview) == sorted(overview)
    seen = overview["c.unclaimed"]
    assert set(seen.counts) == set(STATES)
    assert (seen.counts["completed"], seen.oldest_pending_age) == (0, None)
    assert not seen.paused


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
        for nothing in ("9999999999", "x", "-1", "9" * 30):
            with pytest.raises(NotFound):
                act(nothing)


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


WAYS = {
    "completed": ("ok", {}, "completed"),
    "discarded by its handler": ("answer", {"answer": "discard"}, "discarded"),
    "out of attempts": ("fail", {}, "discarded"),
    "cancelled": ("unclaimed", {}, "cancelled"),
    "expired": ("paused", {}, "discarded"),
}


@pytest.mark.parametrize("way", WAYS)
def test_31_whoever_waits_is_told_each_way_to_end(
    bench: Bench, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waits, "POLL", 60.0)  # only a notice can be the reason
    kind, args, state = WAYS[way]
    opts = {"run_at": bench.engine.now() + timedelta(hours=1)}
    if way == "expired":
        opts = {"expires_at": bench.engine.now() + timedelta(seconds=1)}
    with bench.paused(kind="c.paused"):
        job = bench.enqueue(kind, args, **opts)
        answers: list[str] = []
        thread = threading.Thread(target=lambda: answers.append(bench.waits.wait(job, 30).state))
        thread.start()
        until(lambda: _waiting(bench) == 1, 10, "somebody waits")
        if way == "cancelled":
            bench.inspector.cancel(job)
        elif way == "expired":
            bench.engine.pass_time(1)
        else:
            bench.inspector.retry(job)
        bench.final(job)
        thread.join(10)
    assert answers == [state]


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
    some = [bench.enqueue("listed", run_at=later, tags=("many",)) for _ in range(3)]
    other = bench.enqueue("listed", run_at=later)
    wanted = JobFilter(kind="c.listed", tag="many")
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


def _waiting(bench: Bench) -> int:
    """How many callers wait for jobs."""
    waiters = bench.engine.runtime.store.waiters if bench.name == "memory" else bench.waits._waiters
    return waiters.count(waits.FINAL)
