"""Why a job stands where it stands, in one sentence."""

from __future__ import annotations

from typing import Any, NamedTuple

from shared.jobs.inspect import Explanation
from shared.memory.rows import ENDED, HELD, SCHEDULED, Row, iso
from shared.memory.store import Store

_WHY = {
    "delay": "it was enqueued for later",
    "retry": "its last attempt failed",
    "snooze": "its handler asked for it",
}


class _Reason(NamedTuple):
    sentence: str
    waits_for: str | None
    until: str | None = None


def explain(store: Store, row: Row) -> Explanation:
    """The facts about a job, and what they mean; the caller holds the lock."""
    reason = _reason(store, row)
    facts: dict[str, Any] = {
        "kind": row.kind.name,
        "queue": row.kind.queue,
        "attempt": row.attempt,
        "max_attempts": row.max_attempts,
        "paused": store.is_paused(row),
        "concurrency_key": row.opts.concurrency_key,
        "last_error": next((a.error for a in reversed(row.log) if a.error), None),
    }
    sentence = f"Job {row.id} {reason.sentence}."
    return Explanation(sentence, row.state, row.where, reason.waits_for, reason.until, facts)


def _reason(store: Store, row: Row) -> _Reason:
    if row.where == ENDED:
        return _Reason(f"is {row.state}: nothing more happens to it", None)
    if row.where == HELD:
        asked = "was asked to stop" if row.cancel_requested else "runs"
        return _Reason(f"{asked} (attempt {row.attempt + 1} of {row.max_attempts})", "its end")
    if row.where == SCHEDULED and row.due is not None:
        until = iso(row.due)
        why = "time" if row.why == "delay" else row.why
        return _Reason(f"waits until {until}: {_WHY[row.why]}", why, until)
    if store.is_paused(row):
        return _Reason("waits: its kind or its queue is paused", "resume")
    if store.beside(row) >= row.kind.max_per_key:
        return _Reason(f"waits for its concurrency key {row.opts.concurrency_key!r}", "key")
    return _Reason("may run at once, when run_due is called", "a child")
