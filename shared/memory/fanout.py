"""From events to jobs, as the relay does it: every subscriber gets its job when the event commits.

One commit is one pass: a subscription that coalesces gets one job a subject, for the latest event.
"""

from __future__ import annotations

from collections.abc import Sequence

from shared.events.event import Event
from shared.events.subscriptions import Subscription
from shared.jobs.options import EnqueueOpts, checked_args
from shared.memory.store import Store
from shared.notices.channels import FANOUT


def fan_out(store: Store, events: Sequence[tuple[Event, str | None]]) -> None:
    """Enqueue the jobs of committed events, each with its trace; the caller holds the lock."""
    latest: dict[tuple[str, str], str] = {}
    wanted: list[tuple[Event, str | None, Subscription]] = []
    for event, trace in events:
        for event_type, subscription in store.app.routes:
            if event_type == event.type:
                wanted.append((event, trace, subscription))
                latest[subscription.name, event.subject] = event.id
    jobs: dict[str, dict[str, str]] = {event.id: {} for event, _ in events}
    for event, trace, subscription in wanted:
        if subscription.coalesce and latest[subscription.name, event.subject] != event.id:
            continue
        jobs[event.id][subscription.name] = _enqueue(store, event, trace, subscription)
    for event, _ in events:
        store.outbox[event.id] = (event, jobs[event.id])
        store.waiters.heard(FANOUT, event.id)


def _enqueue(store: Store, event: Event, trace: str | None, subscription: Subscription) -> str:
    kind = store.kind(subscription.name)
    text = checked_args(kind.name, {"event_id": event.id, "subject": event.subject})
    row, _ = store.add(kind, text, EnqueueOpts(owner_id=event.owner_id, trace=trace), event)
    store.place(row)
    return str(row.id)
