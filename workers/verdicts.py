"""What an end means for the job: final, or when and whether it is tried again. Pure.

Before this: the pool's End. After it: a Finish that the completer writes. The rules are those of
shared.jobs.retry; the loss of the whole pool is an interruption.
"""

from __future__ import annotations

from dataclasses import replace

from shared.backoff import DEFAULT, Backoff
from shared.jobs.failures import clean
from shared.jobs.outages import CAUSE, Outage, given_up
from shared.jobs.retry import fate, put_off
from shared.jobs.work import Claim, Finish
from workers.pool.chunk import End

# Another claim of a job whose pool died comes a little later, so that a machine in trouble is not
# driven in a circle.
AFTER_LOSS = 1.0


def verdict(
    claim: Claim, end: End, backoff: Backoff = DEFAULT, outage: Outage | None = None
) -> Finish:
    """Judge the end of a run.

    Args:
        claim: what was run.
        end: how it ended.
        backoff: of the kind.
        outage: of the kind. Its runner answers "snoozed" with an error when the handler raised
            one of these, or its command said "away"; a handler's own snooze has none. A command
            whose kind has no outage has failed.
    """
    if end.outcome == "snoozed" and end.error is not None:
        if outage is not None:
            return _put_off(claim, end, backoff, outage)
        end = replace(end, outcome="failed", cause="exception", delay=None)
    lost = end.outcome == "lost"
    outcome = "interrupted" if lost else end.outcome
    goes = fate(
        outcome,
        attempt=claim.attempt,
        max_attempts=claim.max_attempts,
        delay=AFTER_LOSS if lost else end.delay,
        backoff=backoff,
    )
    return Finish(
        job_id=claim.job_id,
        token=claim.token,
        outcome=outcome,
        state=goes.state,
        delay=goes.delay,
        spent=goes.spent,
        error=None if end.error is None else clean(end.error),
        cause=end.cause,
        evidence=end.evidence or None,
        result=end.result,
        started_at=end.started_at,
    )


def _put_off(claim: Claim, end: End, backoff: Backoff, outage: Outage) -> Finish:
    error = given_up(end.error or "", outage)
    failed = replace(end, outcome="failed", error=error, cause=CAUSE, delay=None)
    goes = put_off(claim.attempt, outage.delay)
    return Finish(
        job_id=claim.job_id,
        token=claim.token,
        outcome="snoozed",
        state=goes.state,
        delay=goes.delay,
        spent=goes.spent,
        error=clean(end.error or ""),
        cause=CAUSE,
        evidence=end.evidence or None,
        started_at=end.started_at,
        horizon=outage.horizon,
        beyond=verdict(claim, failed, backoff),
    )


def plain(claim: Claim, started_at: float) -> Finish:
    """A success with nothing to tell."""
    return Finish(claim.job_id, claim.token, started_at=started_at)


def bare(finish: Finish) -> Finish:
    """The same verdict without what the database may have refused to store.

    A completed job keeps its state: what it did is done, only its result is lost.
    """
    return replace(
        finish,
        error="what this attempt told could not be stored",
        evidence=None,
        result=None,
        beyond=None if finish.beyond is None else bare(finish.beyond),
    )
