"""Clauses 6 to 10, 28, 33 and 35: how jobs are tried, and in which order."""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.backoff import DEFAULT, JITTER, MAIL, WEBHOOK, jittered
from tests.conformance.engines import Bench


def test_06_a_retryable_error_is_retried_and_each_error_recorded(bench: Bench) -> None:
    job = bench.final(bench.enqueue("fail", {"times": 2, "message": "not yet"}))
    assert (job.state, job.attempt) == ("completed", 3)
    assert bench.errors(job.id) == ["ValueError: not yet"] * 2
    assert [a.outcome for a in job.attempts] == ["failed", "failed", "completed"]
    assert [a.cause for a in job.attempts] == ["exception", "exception", None]
    assert [a.attempt for a in job.attempts] == [1, 2, 3]
    assert [a.state for a in job.attempts] == ["retryable", "retryable", "completed"]
    assert len(bench.effects(job.id)) == 3


def test_07_three_failures_of_three_discard_with_three_errors(bench: Bench) -> None:
    job = bench.final(bench.enqueue("fail"))
    assert (job.state, job.attempt, job.max_attempts) == ("discarded", 3, 3)
    assert bench.errors(job.id) == ["ValueError: no"] * 3


def test_07_an_enqueue_may_name_its_own_limit(bench: Bench) -> None:
    job = bench.final(bench.enqueue("fail", max_attempts=1))
    assert (job.state, len(bench.errors(job.id))) == ("discarded", 1)


def test_08_discard_is_one_run_and_discarded_at_once(bench: Bench) -> None:
    job = bench.final(bench.enqueue("answer", {"answer": "discard"}, max_attempts=5))
    assert (job.state, job.attempt) == ("discarded", 1)
    assert bench.errors(job.id) == ["not wanted"]
    assert len(bench.effects(job.id)) == 1


def test_09_three_snoozes_with_one_attempt_still_complete(bench: Bench) -> None:
    args = {"answer": "snooze", "seconds": 0.05, "times": 3}
    job = bench.final(bench.enqueue("answer", args))
    assert (job.state, job.attempt, job.max_attempts) == ("completed", 1, 1)
    assert [a.outcome for a in job.attempts] == ["snoozed"] * 3 + ["completed"]
    assert len(bench.effects(job.id)) == 4


def test_10_a_snooze_waits_at_least_its_time(bench: Bench) -> None:
    job = bench.final(bench.enqueue("answer", {"answer": "snooze", "seconds": 0.8}))
    first, second = job.attempts
    waited = _moment(second.claimed_at) - _moment(first.finished_at)
    assert waited >= timedelta(seconds=0.799)  # moments are told in whole milliseconds


def test_10_a_job_is_not_run_before_its_time(bench: Bench) -> None:
    run_at = bench.engine.now() + timedelta(seconds=0.5)
    job = bench.enqueue("ok", run_at=run_at)
    assert bench.state(job) == "pending"
    assert _moment(bench.final(job).attempts[0].claimed_at) >= run_at - timedelta(milliseconds=1)


def test_10_a_job_that_has_not_started_when_it_expires_is_discarded(bench: Bench) -> None:
    with bench.paused(kind="c.paused"):
        job = bench.enqueue("paused", expires_at=bench.engine.now() + timedelta(seconds=0.3))
        bench.engine.pass_time(0.4)
        assert bench.final(job).state == "discarded"
    assert not bench.effects(job)


def test_28_the_default_backoff_has_the_numbers_of_the_contract() -> None:
    assert [DEFAULT.delay(n) for n in range(1, 12)] == [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900,
    ]  # fmt: skip
    assert DEFAULT.delay(5_000) == 900
    assert [MAIL.delay(n) for n in range(1, 9)] == [20 * 3**n for n in range(8)]
    assert [WEBHOOK.delay(n) for n in range(1, 8)] == [5, 300, 1800, 7200, 18000, 36000, 36000]
    assert all(10 <= jittered(10) <= 10 * (1 + JITTER) for _ in range(200))


def test_35_a_more_urgent_job_runs_first(bench: Bench) -> None:
    with bench.paused(kind="c.ordered"):
        jobs = {
            priority: [bench.enqueue("ordered", priority=priority) for _ in range(3)]
            for priority in (4, 2, 1, 3)
        }
    for job in jobs[4]:
        bench.final(job)
    begun = [(bench.effects(job)[0]["at"], p) for p, group in jobs.items() for job in group]
    assert [priority for _, priority in sorted(begun)] == [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]


def _moment(text: str | None) -> datetime:
    assert text is not None
    return datetime.fromisoformat(text)
