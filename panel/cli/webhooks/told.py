"""How endpoints, deliveries and replays are shown to people.

Used by the actions of `weirkeeper webhooks`; gets what operations return, gives lines of text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from panel.cli.terminal import Column, clean, here
from shared.config.spelling import command_line
from shared.ops.webhooks import Done, Recorded, Started, Type
from shared.webhooks.answers import LOUD
from shared.webhooks.records import (
    Attempt,
    Created,
    Delivery,
    Endpoint,
    Missed,
    Replay,
    Told,
)

_STYLES = {
    "delivered": "green",
    "enabled": "green",
    "pending": "cyan",
    "deferred": "yellow",
    "failed": "red",
    "cancelled": "dim",
}


def _style(text: str) -> str:
    return _STYLES.get(text, "red" if text.startswith("disabled") else "")


def _last_style(text: str) -> str:
    """Of a code, with or without a status behind it."""
    return "red" if text.partition(" ")[0] in LOUD else ""


_ENDPOINTS = (
    Column("id", right=True),
    Column("state", style=_style),
    Column("waiting", right=True),
    Column("failures", right=True),
    Column("types", gives=True),
    Column("url", gives=True),
)
_DELIVERIES = (
    Column("id", right=True),
    Column("seq", right=True),
    Column("type", gives=True),
    Column("state", style=_style),
    Column("tries", right=True),
    Column("last", style=_last_style),
    Column("next try"),
    Column("event"),
)
_ATTEMPTS = (
    Column("no", right=True),
    Column("started"),
    Column("result", style=_style),
    Column("code", style=_last_style),
    Column("status", right=True),
    Column("ms", right=True),
    Column("body", gives=True),
)


def endpoints(found: Sequence[Endpoint]) -> str:
    """A table of endpoints."""
    if not found:
        return f"no endpoints yet; `{command_line()} webhooks create URL --type GLOB` adds one"
    rows = [
        (
            one.id,
            _state(one),
            f"{one.waiting - 1}+" if one.waiting > 1000 else one.waiting or None,
            one.failures or None,
            ", ".join(one.event_types),
            one.url,
        )
        for one in found
    ]
    return here().table(_ENDPOINTS, rows)


def endpoint(one: Endpoint) -> str:
    """One endpoint, in a line."""
    return f"endpoint {one.id} is {_state(one)}: {clean(one.url)} gets {', '.join(one.event_types)}"


def whole(one: Endpoint) -> str:
    """All of one endpoint, a line each."""
    facts = {name: getattr(one, name) for name in one.__struct_fields__}
    shown = {name: value for name, value in facts.items() if value not in (None, "", [], {})}
    return "\n".join(f"{name}: {_fact(value)}" for name, value in shown.items())


def types(found: Sequence[Type]) -> str:
    """Types that may be sent."""
    rows = [(one.name, one.description) for one in found]
    return here().table((Column("type"), Column("what happened", gives=True)), rows)


def secret(made: Created) -> str:
    """A new secret, with what to do with it."""
    return (
        f"endpoint {made.id}\nsecret   {made.secret}\n"
        "Give it to the receiver now: it is not shown again."
    )


def deleted(done: Done) -> str:
    """An endpoint that is gone."""
    return f"endpoint {done.id} is gone"


def tested(done: Recorded) -> str:
    """A test that is recorded: it may have to wait, as any event."""
    ours = command_line()
    return (
        f"event {done.event_id} is recorded\n"
        f"`{ours} webhooks explain ENDPOINT {done.event_id}` tells what becomes of it"
    )


def started(done: Started) -> str:
    """Deliveries that are on their way again."""
    if not done.delivery_ids:
        return "nothing to send: it is on its way already"
    return f"on its way again: {', '.join(done.delivery_ids)}"


def deliveries(found: Sequence[Delivery]) -> str:
    """A table of deliveries."""
    rows = [
        (
            one.id,
            one.event_seq,
            one.event_type,
            one.state,
            one.tries,
            one.code if one.status is None else f"{one.code} {one.status}",
            one.next_at if one.state == "pending" else None,
            one.event_id,
        )
        for one in found
    ]
    return here().table(_DELIVERIES, rows) if rows else "no deliveries that fit"


def attempts(found: Sequence[Attempt]) -> str:
    """A table of requests."""
    rows = [
        (
            one.number,
            one.started_at,
            one.result,
            one.code,
            one.status,
            f"{sum(one.phases.values()):,.0f}",
            one.body,
        )
        for one in found
    ]
    return here().table(_ATTEMPTS, rows) if rows else "no attempts yet"


def missed(found: Sequence[Missed]) -> str:
    """Events, a line each, as the endpoint was to get them."""
    return "\n".join(f"{one.seq} {one.state} {clean(one.body)}" for one in found) or "none"


def explained(found: Told) -> str:
    """The sentence, then the facts."""
    lines = [clean(found.sentence), ""]
    return "\n".join(lines + [f"{name}: {_fact(value)}" for name, value in found.facts.items()])


def replay(found: Replay) -> str:
    """How far it has come, in a line."""
    return (
        f"replay {found.id} to endpoint {found.endpoint_id} is {found.state}: "
        f"{found.sent} of {found.total} events"
    )


def planned(found: Replay) -> str:
    """What a replay would send, and how to have it sent."""
    return (
        f"replay {found.id} would send {found.total} events to endpoint {found.endpoint_id}\n"
        f"nothing was sent; `{command_line()} webhooks start-replay {found.id}` sends them"
    )


def _state(one: Endpoint) -> str:
    if one.enabled:
        return "enabled"
    return "paused" if one.disabled_reason == "manual" else f"disabled ({one.disabled_reason})"


def _fact(value: Any) -> str:
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
