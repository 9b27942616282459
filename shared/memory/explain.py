"""The facts about a job in memory; shared.jobs.explain makes the sentence."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any

from shared.jobs import explain as places
from shared.jobs.inspect import Explanation
from shared.memory import limits
from shared.memory.rows import ENDED, HELD, SCHEDULED, Row, iso
from shared.memory.store import Store


def explain(store: Store, row: Row) -> Explanation:
    """Explain one job; the caller holds the lock."""
    return places.explain({**_always(store, row), **_of_place(store, row)})


def _always(store: Store, row: Row) -> dict[str, Any]:
    queue_paused = store.paused.get(("queue", row.kind.queue))
    kind_paused = store.paused.get(("kind", row.kind.name))
    rate = row.kind.rate
    return {
        "command": row.kind.command or None,
        "kind": row.kind.name,
        "queue": row.kind.queue,
        "queue_paused_at": _told(queue_paused),
        "kind_paused_at": _told(kind_paused),
        "state": row.state,
        "attempt": row.attempt,
        "max_attempts": row.max_attempts,
        "expires_at": _told(row.opts.expires_at),
        "expired": _expired(store, row),
        "processes": 1,  # run_due: one that runs one job at a time
        "children": 1,
        "busy": sum(other.where == HELD for other in store.rows.values()),
        "cap": store.app.all_queues[row.kind.queue].cap,
        "rate_n": rate and rate.n,
        "rate_seconds": rate and rate.per,
        "rate_opens_at": _told(limits.rate_opens(store, row)),
    }


def _of_place(store: Store, row: Row) -> dict[str, Any]:
    if row.where == ENDED:
        return _ended(row)
    if row.where == HELD:
        return _running(row)
    if row.where == SCHEDULED:
        return _scheduled(store, row)
    closed = limits.key_closed(store, row)
    if closed or limits.key_is_full(store, row):
        holders = store.holders(row)
        return {
            "where": places.PARKED,
            "key": row.opts.concurrency_key,
            "max_n": row.kind.max_per_key,
            "holders": len(holders),
            "holder": str(holders[0].id) if holders else None,
            "open_at": _told(closed[0]) if closed else None,
            "closed": True if closed == (None,) else None,
        }
    return {
        "where": places.READY,
        "ready_at": _told(row.ready_at),
        "ahead": store.line.ahead(row, lambda other: ("kind", other.kind.name) in store.paused),
        "fair": row.kind.fair or None,
    }


def _scheduled(store: Store, row: Row) -> dict[str, Any]:
    return {
        "where": places.SCHEDULED,
        "run_at": _told(row.due),
        "why": row.why,
        "due": row.due is not None and row.due <= store.clock.wall(),
        "error": next((entry.error for entry in reversed(row.log) if entry.error), None),
        "cause": row.log[-1].cause if row.log else None,
    }


def _running(row: Row) -> dict[str, Any]:
    began = row.claimed_at
    ends = None if began is None else began + timedelta(seconds=row.timeout)
    return {
        "where": places.RUNNING,
        "slot": "run_due",
        "host": "this machine",
        "pid": os.getpid(),
        "owner": "alive",
        "claimed_at": _told(began),
        "started_at": _told(began),
        "deadline": _told(ends),
        "cancel_requested_at": _told(row.cancel_requested_at),
        "progress": None if row.progress is None else str(row.progress),
    }


def _ended(row: Row) -> dict[str, Any]:
    last = row.log[-1]
    return {
        "where": places.ENDED,
        "outcome": last.outcome,
        "cause": last.cause,
        "error": last.error,
        "started_at": last.started_at,
        "ended_at": last.finished_at,
    }


def _expired(store: Store, row: Row) -> bool | None:
    """Whether it is too late to start; None = that does not matter: no moment, or it was tried."""
    at = row.opts.expires_at
    return None if at is None or row.log else at <= store.clock.wall()


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment)
