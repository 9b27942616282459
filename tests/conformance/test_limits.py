"""Clause 33, and what limits else there are: concurrency keys, caps, rates, turns of owners."""

from __future__ import annotations

from datetime import datetime

from shared.jobs.inspect import Explanation
from tests.conformance.engines import Bench
from tests.support.waiting import until


def test_33_two_jobs_with_one_concurrency_key_never_run_at_once(bench: Bench) -> None:
    with bench.held(concurrency_key="one at once") as (first, _):
        second = bench.enqueue("ok", concurrency_key="one at once")
        other = bench.enqueue("ok", concurrency_key="another")
        free = bench.enqueue("ok")
        assert bench.final(other).state == "completed"
        assert bench.final(free).state == "completed"
        told = bench.engine.until(lambda: _parked(bench, second), "it waits for its key")
        assert told.waits_for == "key"
        assert f"held by job {first}" in told.sentence
        assert bench.state(second) == "pending"
        assert not bench.effects(second)
    assert bench.final(second).state == "completed"


def _parked(bench: Bench, job: str) -> Explanation | None:
    told = bench.inspector.explain(job)
    return told if told.where == "parked" else None


def test_33_as_many_as_the_kind_says_run_at_once(bench: Bench) -> None:
    with bench.held("keyed", concurrency_key="two at once") as (_, args):
        jobs = [bench.enqueue("keyed", args, concurrency_key="two at once") for _ in range(2)]
        if bench.name == "memory":  # has one child, which is busy
            assert bench.inspector.explain(jobs[0]).where == "ready"
            return
        until(lambda: bench.effects(jobs[0]), 20, "the second place is taken")
        until(lambda: _parked(bench, jobs[1]), 20, "there is no third")
    for job in jobs:
        assert bench.final(job).state == "completed"


def test_33_a_cancelled_job_gives_its_turn_to_the_next(bench: Bench) -> None:
    with bench.held(concurrency_key="turns"):
        jobs = [bench.enqueue("ok", concurrency_key="turns") for _ in range(3)]
        # A claim that has yet to see that its key is taken holds it for a moment.
        assert bench.inspector.cancel(jobs[0]) in {"cancelled", "running"}
        assert bench.final(jobs[0]).state == "cancelled"
    assert bench.final(jobs[1]).state == "completed"
    assert bench.final(jobs[2]).state == "completed"
    assert not bench.effects(jobs[0])


def test_33_a_closed_key_starts_nothing_until_it_is_opened(bench: Bench) -> None:
    bench.engine.close_key("closed")
    job = bench.enqueue("ok", concurrency_key="closed")
    other = bench.enqueue("ok", concurrency_key="open")
    assert bench.final(other).state == "completed"
    told = bench.engine.until(lambda: _parked(bench, job), "it waits for its key")
    assert (told.waits_for, told.until) == ("key", None)
    assert "closed until it is enabled" in told.sentence
    bench.engine.open_key("closed")
    assert bench.final(job).state == "completed"


def test_a_cap_is_of_the_queue_and_not_of_a_process(bench: Bench) -> None:
    with bench.held("capped"):
        second = bench.enqueue("capped", {"seconds": 0})
        elsewhere = bench.enqueue("ok")
        assert bench.final(elsewhere).state == "completed"
        told = bench.inspector.explain(second)
        assert (told.where, told.waits_for) == ("ready", "cap")
        assert not bench.effects(second)
    assert bench.final(second).state == "completed"


def test_a_rate_starts_no_more_within_its_period(bench: Bench) -> None:
    jobs = [bench.enqueue("rated") for _ in range(5)]
    for job in jobs:
        assert bench.final(job).state == "completed"
    moments = sorted(
        datetime.fromisoformat(str(attempt.claimed_at))
        for job in jobs
        for attempt in bench.inspector.get(job).attempts
    )
    apart = [(b - a).total_seconds() for a, b in zip(moments, moments[2:], strict=False)]
    assert min(apart) >= 0.999, "claimed_at is told in whole milliseconds"


def test_who_waits_for_a_rate_is_told_until_when(bench: Bench) -> None:
    first, second = bench.enqueue("rarely"), bench.enqueue("rarely")
    assert bench.final(first).state == "completed"
    other = bench.enqueue("ok")
    assert bench.final(other).state == "completed", "other kinds of the queue go on"
    told = bench.inspector.explain(second)
    assert (told.where, told.waits_for) == ("ready", "rate")
    assert told.until is not None
    left = datetime.fromisoformat(told.until) - bench.engine.now()
    assert 3000 < left.total_seconds() <= 3600
    assert not bench.effects(second)


def test_many_jobs_of_one_owner_hold_up_no_other(bench: Bench) -> None:
    with bench.paused(kind="c.fair"):
        many = [bench.enqueue("fair", owner_id="ada") for _ in range(60)]
        few = [bench.enqueue("fair", owner_id=owner) for owner in ("eve", "eve", "bob")]
        nobodys = bench.enqueue("fair")
    for job in (*few, nobodys, *many):
        assert bench.final(job).state == "completed"
    order = sorted((*many, *few, nobodys), key=lambda job: float(bench.effects(job)[0]["at"]))
    assert order.index(few[0]) < 10
    assert order.index(few[2]) < 10
    assert order.index(nobodys) < 10
    assert order.index(few[0]) < order.index(few[1]) < 20
    assert [job for job in order if job in many] == many, "an owner's own jobs keep their order"
