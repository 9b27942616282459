"""How events are shown to people: lists, one event with its deliveries, plans, replays.

Used by `weirkeeper events`; gets what operations return, gives lines of text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from panel.cli.jobs_told import facts_told, since, until
from panel.cli.output import state_style
from panel.cli.terminal import Column, here
from shared.events.log import Recorded, Replay, Type
from shared.ops.events import Plan, Reach

STYLES = {"poisoned": "red", "failing": "yellow", "pending": "cyan"}
LIST = (
    Column("id"),
    Column("type", gives=True),
    Column("subject", gives=True),
    Column("state", style=lambda text: STYLES.get(text, "")),
    Column("failures", right=True),
    Column("age", right=True),
)
DELIVERIES = (
    Column("subscriber", gives=True),
    Column("job", right=True),
    Column("state", style=state_style),
)
REPLAYS = (
    Column("id", right=True),
    Column("subscriber", gives=True),
    Column("state"),
    Column("events", right=True),
    Column("done", right=True),
    Column("jobs", right=True),
    Column("from"),
    Column("to"),
)
TYPES = (
    Column("type"),
    Column("exposure"),
    Column("subscribers", gives=True),
    Column("meaning", gives=True),
)
REACHES = (
    Column("type", gives=True),
    Column("events", right=True),
    Column("subscribers", gives=True),
    Column("endpoints", gives=True),
)


def listed(events: Iterable[Recorded]) -> str:
    """A table of events."""
    rows = [
        (e.id, e.type, e.subject, e.state, e.failures or None, since(e.occurred_at)) for e in events
    ]
    return here().table(LIST, rows)


def told(event: Recorded) -> str:
    """One event with everything."""
    facts: list[tuple[str, object]] = [
        ("event", event.id),
        ("type", event.type),
        ("subject", event.subject),
        ("owner", event.owner_id),
        ("occurred", f"{event.occurred_at} ({since(event.occurred_at)} ago)"),
        ("state", event.state),
        ("data", json.dumps(event.data, ensure_ascii=False)),
    ]
    if event.trace is not None:
        facts.append(("trace", event.trace))
    if event.failures or event.last_error:
        facts += [("failures", event.failures), ("last error", event.last_error)]
    if event.next_try_at is not None:
        facts.append(("next try", f"{event.next_try_at} (in {until(event.next_try_at)})"))
    if event.fanned_out_at is not None:
        facts.append(("fanned out", event.fanned_out_at))
    lines = facts_told(facts)
    if event.deliveries:
        rows = [(d.subscription, d.job_id, d.state) for d in event.deliveries]
        lines += ["", here().table(DELIVERIES, rows)]
    elif event.fanned_out_at is not None:
        lines += ["", "nobody subscribed to it"]
    return "\n".join(lines)


def planned(plan: Plan, again: str) -> str:
    """What a replay would do, and how to have it done; or that it has begun."""
    if plan.replay is not None:
        return (
            f"replay {plan.replay.id} delivers {plan.events} events to {plan.subscriber}; "
            f"weirkeeper events replay-status {plan.replay.id} tells how far it is"
        )
    return (
        f"{plan.events} events of {', '.join(plan.types)} would be delivered to "
        f"{plan.subscriber} once more; nothing has happened yet\n"
        f"to begin: {again} --confirm {plan.events}"
    )


def replays(found: Sequence[Replay]) -> str:
    """A table of replays."""
    rows = [
        (r.id, r.subscription, r.state, r.events, r.done, r.jobs, r.since[:19], r.until[:19])
        for r in found
    ]
    return here().table(REPLAYS, rows)


def types(found: Sequence[Type]) -> str:
    """A table of event types."""
    rows = [(t.name, t.exposure, ", ".join(t.subscriptions) or None, t.description) for t in found]
    return here().table(TYPES, rows)


def reaches(found: Sequence[Reach]) -> str:
    """A table of who would have been reached."""
    rows = [
        (r.type, r.events, ", ".join(r.subscribers) or None, ", ".join(r.endpoints) or None)
        for r in found
    ]
    return here().table(REACHES, rows)
