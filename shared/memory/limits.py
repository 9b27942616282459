"""What keeps a job in line whose time has come: its key, the cap of its queue, its kind's rate.

The rules are those of the database; the caller holds the store's lock.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from shared.memory.rows import HELD, READY, Row
from shared.memory.store import Store


def may_start(store: Store, row: Row) -> bool:
    """Whether nothing keeps a job in line."""
    return not (
        store.is_paused(row)
        or key_is_full(store, row)
        or key_closed(store, row)
        or cap_reached(store, row)
        or rate_opens(store, row)
    )


def started(store: Store, row: Row) -> None:
    """Count a job that starts."""
    if row.kind.rate is not None:
        store.starts.setdefault(row.kind.name, []).append(store.clock.wall())


def key_is_full(store: Store, row: Row) -> bool:
    """Whether as many jobs with its key run as may."""
    return len(store.holders(row)) >= row.kind.max_per_key


def key_closed(store: Store, row: Row) -> tuple[datetime | None] | None:
    """Until when its key is closed: (a moment, or None = until it is opened); None = it is open."""
    key = row.opts.concurrency_key
    if key is None or key not in store.closed_keys:
        return None
    until = store.closed_keys[key]
    return None if until is not None and until <= store.clock.wall() else (until,)


def cap_reached(store: Store, row: Row) -> bool:
    """Whether as many jobs of its queue run as may."""
    cap = store.app.all_queues[row.kind.queue].cap
    return cap is not None and running(store, row.kind.queue) >= cap


def running(store: Store, queue: str) -> int:
    """How many jobs of a queue run."""
    return sum(r.where == HELD and r.kind.queue == queue for r in store.rows.values())


def rate_opens(store: Store, row: Row) -> datetime | None:
    """When the next job of its kind may start; None = now."""
    rate = row.kind.rate
    if rate is None:
        return None
    now = store.clock.wall()
    recent = [at for at in store.starts.get(row.kind.name, []) if at + _per(row) > now]
    store.starts[row.kind.name] = recent
    return recent[-rate.n] + _per(row) if len(recent) >= rate.n else None


def next_opening(store: Store) -> datetime | None:
    """The first moment at which a key or a rate lets a waiting job start."""
    moments = []
    for row in store.rows.values():
        if row.where == READY:
            closed = key_closed(store, row)
            moments += [closed[0] if closed else None, rate_opens(store, row)]
    return min((moment for moment in moments if moment is not None), default=None)


def _per(row: Row) -> timedelta:
    return timedelta(seconds=row.kind.rate.per if row.kind.rate else 0.0)
