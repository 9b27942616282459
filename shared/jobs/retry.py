"""The rules of retries: what becomes of a job when a run of it ends. Pure; the one place of them.

Attempts are spent by completions, failures, timeouts, crashes and discards, never by a snooze, an
interruption or a cancel. Jitter is added here, so that what failed together does not return
together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from shared.backoff import Backoff, jittered
from shared.jobs.states import CANCELLED, COMPLETED, DISCARDED, RETRYABLE, waiting_state


class Fate(NamedTuple):
    """Where a job goes.

    Attributes:
        state: that it then has.
        delay: None = final; 0 = ready at once; else seconds until it may run again.
        spent: an attempt was spent.
    """

    state: str
    delay: float | None
    spent: bool


def put_off(attempt: int, delay: float, jitter: Callable[[float], float] = jittered) -> Fate:
    """Where a job goes whose dependency is away: it waits, and no attempt is spent.

    Args:
        attempt: tries spent before this run.
        delay: seconds, of the kind's outage.
        jitter: spreads it.
    """
    return Fate(waiting_state(attempt), jitter(delay), spent=False)


def fate(  # noqa: PLR0913  (each is one fact about the end of a run)
    outcome: str,
    *,
    attempt: int,
    max_attempts: int,
    delay: float | None,
    backoff: Backoff,
    jitter: Callable[[float], float] = jittered,
) -> Fate:
    """Decide where a job goes.

    Args:
        outcome: completed, discarded, cancelled, snoozed, interrupted, or one of the failures
            (failed, timeout, crashed).
        attempt: tries spent before this run.
        max_attempts: of the job.
        delay: seconds that the outcome asks for; None = none.
        backoff: of the kind.
        jitter: spreads the delay after a failure.
    """
    if outcome == "completed":
        return Fate(COMPLETED, None, spent=True)
    if outcome == "discarded":
        return Fate(DISCARDED, None, spent=True)
    if outcome == "cancelled":
        return Fate(CANCELLED, None, spent=False)
    if outcome in ("snoozed", "interrupted"):
        return Fate(waiting_state(attempt), delay or 0.0, spent=False)
    tries = attempt + 1
    if tries >= max_attempts:
        return Fate(DISCARDED, None, spent=True)
    seconds = backoff.delay(tries) if delay is None else delay
    return Fate(RETRYABLE, jitter(seconds), spent=True)
