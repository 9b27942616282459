"""What can happen to a committed job, one function each; the caller holds the store's lock.

The same rules as the database's (docs/state_machine.md): a final state is written and told in one
step, whatever path it came by.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from shared.errors import Conflict
from shared.jobs.answers import Answer
from shared.jobs.outages import CAUSE, given_up
from shared.jobs.retry import Fate, fate, put_off
from shared.jobs.states import CANCELLED, COMPLETED, DISCARDED, waiting_state
from shared.memory.rows import ENDED, HELD, READY, SCHEDULED, Row, iso
from shared.memory.store import Store


def begin(store: Store, row: Row) -> None:
    """A run starts."""
    row.where, row.claimed_at, row.cancel_requested_at = HELD, store.clock.wall(), None
    row.run += 1
    row.progress = None


def end(store: Store, row: Row, answer: Answer, stack: str | None = None) -> None:
    """A run ended; an interruption is an answer too."""
    answer = _within_horizon(store, row, answer)
    goes = _fate(store, row, answer)
    row.attempt += goes.spent
    row.progress = None
    row.result = answer.result
    asked = row.cancel_requested_at is not None and goes.delay is not None
    began = None if row.claimed_at is None else iso(row.claimed_at)
    store.write(
        row,
        CANCELLED if asked and not goes.spent else answer.outcome,
        CANCELLED if asked else goes.state,
        error=answer.error,
        cause=answer.cause or ("exception" if answer.outcome == "failed" else None),
        evidence={} if stack is None else {"stack": stack},
        claimed_at=began,
        started_at=began,
    )
    if not asked:
        _wait_again(store, row, goes, answer.outcome)


def _fate(store: Store, row: Row, answer: Answer) -> Fate:
    if answer.cause == CAUSE and answer.outcome == "snoozed":
        return put_off(row.attempt, answer.delay or 0.0, store.jitter)
    return fate(
        answer.outcome,
        attempt=row.attempt,
        max_attempts=row.max_attempts,
        delay=answer.delay,
        backoff=row.kind.backoff,
        jitter=store.jitter,
    )


def _within_horizon(store: Store, row: Row, answer: Answer) -> Answer:
    """A job is put off for a dependency that is away as long as its kind allows; then it fails."""
    outage, since = row.kind.outage, None
    if outage is None or answer.cause != CAUSE:
        return answer
    for entry in reversed(row.log):
        if (entry.outcome, entry.cause) == ("snoozed", CAUSE):
            since = datetime.fromisoformat(entry.finished_at)
        elif entry.outcome != "interrupted":
            break
    if since is None or (store.clock.wall() - since).total_seconds() <= outage.horizon:
        return answer
    return Answer("failed", error=given_up(answer.error or "", outage), cause=CAUSE)


def _wait_again(store: Store, row: Row, goes: Fate, outcome: str) -> None:
    if goes.delay is not None:
        store.again(row, goes.delay, "snooze" if outcome == "snoozed" else "retry")


def expire_due(store: Store, now: datetime) -> None:
    """Discard what was to start before now, waits, and was never tried."""
    late = [row for row in store.expiring if row.opts.expires_at and row.opts.expires_at <= now]
    for row in late:
        if row.where == HELD:
            continue  # it may be given back
        store.expiring.remove(row)
        if row.where in (READY, SCHEDULED) and not row.log:
            row.run += 1
            told = "it was to start before it expired, and did not"
            store.write(row, "discarded", DISCARDED, error=told, cause="expired")


def cancel(store: Store, row: Row) -> bool:
    """End a waiting job, ask a running one; whether that changed anything."""
    if row.where == ENDED:
        return False
    if row.where == HELD:
        row.cancel_requested_at = row.cancel_requested_at or store.clock.wall()
        return True
    row.run += 1
    store.write(
        row, "cancelled", CANCELLED, error="cancelled by hand while it waited", cause="by_hand"
    )
    return True


def retry(store: Store, row: Row) -> bool:
    """Run a discarded or cancelled job once more, a scheduled one now; whether it did.

    Raises:
        Conflict: it is completed, or another job holds its uniqueness.
    """
    if row.where == SCHEDULED:
        store.line.join(row, store.clock.wall())
        return True
    if row.where != ENDED:
        return False
    if row.state == COMPLETED:
        raise Conflict(
            f"job {row.id}: expected a discarded or cancelled one; got a completed one; "
            "enqueue it anew"
        )
    store.uniques.take(row)
    was = row.log[-1]
    note = {**was.evidence, "retried_by_hand": iso(store.clock.wall()), "was": was.state}
    row.log[-1] = replace(was, state=waiting_state(row.attempt), evidence=note)
    store.line.join(row, store.clock.wall())
    return True
