"""What an end means for the job: final, or when and whether it is tried again. Pure.

Before this: the pool's End. After it: a Finish that the completer writes. The one place where the
rules of retries are applied: attempts are spent by failures, timeouts and crashes, never by a
snooze, an interruption, or the loss of the whole pool.
"""

from __future__ import annotations

from dataclasses import replace

from shared.backoff import DEFAULT, Backoff, jittered
from shared.jobs.failures import clean
from shared.jobs.states import DISCARDED, RETRYABLE, waiting_state
from shared.jobs.work import Claim, Finish
from workers.pool.slot import End

# Another claim of a job whose pool died comes a little later, so that a machine in trouble is not
# driven in a circle.
AFTER_LOSS = 1.0


def verdict(claim: Claim, end: End, backoff: Backoff = DEFAULT) -> Finish:
    """Judge the end of a run.

    Args:
        claim: what was run.
        end: how it ended.
        backoff: of the kind.
    """
    told = Finish(
        job_id=claim.job_id,
        token=claim.token,
        outcome=end.outcome,
        error=None if end.error is None else clean(end.error),
        cause=end.cause,
        evidence=end.evidence or None,
        result=end.result,
        started_at=end.started_at,
    )
    if end.outcome == "completed":
        return told
    if end.outcome == "discarded":
        return replace(told, state=DISCARDED)
    waiting = replace(told, state=waiting_state(claim.attempt), spent=False)
    if end.outcome == "snoozed":
        return replace(waiting, delay=end.delay or 0.0)
    if end.outcome == "interrupted":
        return replace(waiting, delay=0.0)
    if end.outcome == "lost":
        return replace(waiting, outcome="interrupted", delay=AFTER_LOSS)
    return _failed(claim, end, told, backoff)


def _failed(claim: Claim, end: End, told: Finish, backoff: Backoff) -> Finish:
    tries = claim.attempt + 1
    if tries >= claim.max_attempts:
        return replace(told, state=DISCARDED)
    seconds = backoff.delay(tries) if end.delay is None else end.delay
    return replace(told, state=RETRYABLE, delay=jittered(seconds))


def bare(finish: Finish) -> Finish:
    """The same verdict without what the database may have refused to store.

    A completed job keeps its state: what it did is done, only its result is lost.
    """
    return replace(
        finish, error="what this attempt told could not be stored", evidence=None, result=None
    )
