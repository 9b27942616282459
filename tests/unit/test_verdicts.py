"""What an end means for the job: the rules of retries, one by one."""

from __future__ import annotations

import pytest

from shared.backoff import JITTER, Backoff
from tests.support.works import claim
from workers.pool.chunk import End
from workers.verdicts import AFTER_LOSS, bare, verdict

AT = 1.8e9


def end(outcome: str, **more: object) -> End:
    return End(1, outcome, AT, 0.1, **more)  # type: ignore[arg-type]


def test_a_success_is_final_and_plain():
    done = verdict(claim(1), end("completed"))
    assert (done.state, done.delay, done.spent, done.plain) == ("completed", None, True, True)
    assert (done.job_id, done.token, done.started_at) == (1, 7, AT)


@pytest.mark.parametrize("outcome", ["failed", "timeout", "crashed"])
def test_a_failure_spends_an_attempt_and_waits_its_backoff(outcome):
    done = verdict(claim(1, attempt=1, max_attempts=3), end(outcome), Backoff(base=10))
    assert (done.outcome, done.state, done.spent) == (outcome, "retryable", True)
    assert 20 <= done.delay <= 20 * (1 + JITTER)


@pytest.mark.parametrize("outcome", ["failed", "timeout", "crashed"])
def test_the_last_attempt_discards(outcome):
    done = verdict(claim(1, attempt=2, max_attempts=3), end(outcome))
    assert (done.outcome, done.state, done.delay, done.spent) == (outcome, "discarded", None, True)


def test_a_retry_may_name_its_own_delay():
    done = verdict(claim(1), end("failed", delay=100.0))
    assert 100 <= done.delay <= 100 * (1 + JITTER)


def test_attempt_5000_does_not_overflow():
    done = verdict(claim(1, attempt=5_000, max_attempts=10_000), end("failed"))
    assert 900 <= done.delay <= 1080


@pytest.mark.parametrize(("attempt", "state"), [(0, "pending"), (1, "retryable")])
@pytest.mark.parametrize(
    ("outcome", "kept", "delay"),
    [
        ("snoozed", "snoozed", 30.0),
        ("interrupted", "interrupted", 0.0),
        ("lost", "interrupted", AFTER_LOSS),
    ],
)
def test_what_is_not_the_jobs_fault_spends_nothing(outcome, kept, delay, attempt, state):
    last = claim(1, attempt=attempt, max_attempts=attempt + 1)
    done = verdict(last, end(outcome, delay=30.0 if outcome == "snoozed" else None))
    assert (done.outcome, done.state, done.delay, done.spent) == (kept, state, delay, False)


def test_discard_is_final_whatever_is_left():
    done = verdict(claim(1), end("discarded", error="no"))
    assert (done.state, done.delay, done.error) == ("discarded", None, "no")


def test_bare_keeps_the_verdict_and_drops_the_words():
    done = bare(verdict(claim(1), end("completed", result='"x"', evidence={"a": 1})))
    assert (done.state, done.result, done.evidence) == ("completed", None, None)
    assert done.error
