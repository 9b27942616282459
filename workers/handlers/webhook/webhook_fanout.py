"""Handler of `webhook.fanout`: an event that may leave, so each endpoint that wants it gets it.

Runs in a child of the webhook queue, after the relay made a job of the event. One delivery and one
job for each endpoint, all in one transaction; a second run finds them and adds nothing. Jobs of
this kind run side by side: for an endpoint that keeps order, whichever comes first takes the events
before its own along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from shared.events.event import Event
from shared.events.globs import matches
from shared.failpoints import fp
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed
from shared.postgres.webhooks.deliveries import PostgresDeliveries, Target
from shared.webhooks.body import Message, encode
from shared.webhooks.endpoint import TEST, test_subject


def handle(ctx: Context, _args: Mapping[str, Any], event: Event) -> Completed:
    """Make the deliveries of an event; the result counts new ones."""
    if event.owner_id is None:
        return Completed({"deliveries": 0})  # nobody's event is for nobody
    fp("webhook_fanout_begun")
    with ctx.connection() as conn:
        deliveries = PostgresDeliveries(conn)
        targets = deliveries.targets(event.owner_id)
        message_of = cache(deliveries.message)
        with deliveries.together():
            new = sum(_add(deliveries, target, event, message_of) for target in targets)
    fp("webhook_fanned_out")
    return Completed({"deliveries": new})


def _add(
    deliveries: PostgresDeliveries,
    target: Target,
    event: Event,
    message_of: Callable[[str], Message | None],
) -> int:
    """Put an event, and what stands in line before it, on its way to one endpoint."""
    if not (target.strict or wants(target, event)):
        return 0
    due = deliveries.line(target.id, event.id) if target.strict else [event.id]
    found = [message for message in map(message_of, due) if message is not None]
    return sum(
        deliveries.add(
            target.id,
            message.id,
            encode(message, target.format),
            "test" if message.type == TEST else "auto",
        )
        is not None
        for message in found
        if wants(target, message)
    )


def wants(target: Target, event: Event | Message) -> bool:
    """Whether an endpoint is to get an event; a test is for the one that it names."""
    if event.type == TEST:
        return event.subject == test_subject(str(target.id))
    return any(matches(pattern, event.type) for pattern in target.patterns)
