"""Handler of `webhook.fanout`: an event that may leave, so each endpoint that wants it gets it.

Runs in a child of the webhook queue, after the relay made a job of the event. One delivery and one
job for each endpoint, all in one transaction; a second run finds them and adds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.events.event import Event
from shared.events.globs import matches
from shared.failpoints import fp
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed
from shared.postgres.deliveries import PostgresDeliveries
from shared.webhooks.body import encode
from shared.webhooks.endpoint import TEST, test_subject


def handle(ctx: Context, _args: Mapping[str, Any], event: Event) -> Completed:
    """Make the deliveries of an event; the result counts new ones."""
    if event.owner_id is None:
        return Completed({"deliveries": 0})  # nobody's event is for nobody
    fp("webhook_fanout_begun")
    trigger = "test" if event.type == TEST else "auto"
    with ctx.connection() as conn:
        deliveries = PostgresDeliveries(conn)
        targets = [
            target
            for target in deliveries.targets(event.owner_id)
            if wants(str(target.id), target.patterns, event)
        ]
        message = deliveries.message(event.id) if targets else None
        if message is None:
            return Completed({"deliveries": 0})
        bodies = {target.id: encode(message, target.format) for target in targets}
        new = deliveries.fan_out(event.id, trigger, bodies)
    fp("webhook_fanned_out")
    return Completed({"deliveries": new})


def wants(endpoint_id: str, patterns: Sequence[str], event: Event) -> bool:
    """Whether an endpoint is to get an event; a test is for the one that it names."""
    if event.type == TEST:
        return event.subject == test_subject(endpoint_id)
    return any(matches(pattern, event.type) for pattern in patterns)
