"""An application of its own: what Weirkeeper runs besides, or instead of, the reference site.

    PYTHONPATH=docs/examples WEIRKEEPER_APP=orders:app script/server        # alone
    PYTHONPATH=docs/examples WEIRKEEPER_APP=orders:with_site script/server  # beside the site

It declares one event type, one subscriber of it, and one kind of job that is enqueued directly:

    select weirkeeper.record_event('order.paid', subject => 'order/17', data => '{"cents": 990}');
    select weirkeeper.enqueue('report.daily', '{"day": "2026-11-29"}');

It needs no table: what happened is the event log itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from weirkeeper import App, Completed, Discard, Event, EventType, Kind, Subscription

PAID = (
    "select count(*), coalesce(sum((data ->> 'cents')::bigint), 0) from weirkeeper.event"
    " where type = 'order.paid' and occurred_at >= %(day)s::date"
    " and occurred_at < %(day)s::date + 1"
)


def number_receipt(_ctx: Any, _args: Mapping[str, Any], event: Event) -> Completed | Discard:
    """Number the receipt of a paid order: the same order always gets the same number."""
    cents = event.data.get("cents")
    if not isinstance(cents, int) or cents < 0:
        return Discard(f"order.paid without a price: {event.subject}")
    order = event.subject.removeprefix("order/")
    return Completed({"receipt": f"R-{event.occurred_at[:4]}-{order}", "cents": cents})


def report_day(ctx: Any, args: Mapping[str, Any]) -> Completed | Discard:
    """Count a day's paid orders and what they brought, in cents."""
    try:
        day = date.fromisoformat(str(args.get("day")))
    except ValueError:
        return Discard(f"report.daily: expected a day such as 2026-11-29; got {args.get('day')!r}")
    with ctx.connection() as conn:
        orders, cents = conn.execute(PAID, {"day": day}).fetchone()
    return Completed({"day": day.isoformat(), "orders": orders, "cents": int(cents)})


app = App(
    include_site=False,
    event_types=(EventType("order.paid", "A customer paid an order.", "order/<number>"),),
    subscriptions=(
        Subscription(
            "receipt.number",
            types=("order.*",),
            queue="notify",
            handler="orders:number_receipt",
        ),
    ),
    kinds=(Kind("report.daily", queue="maintenance", handler="orders:report_day", max_attempts=3),),
)
with_site = replace(app, include_site=True)
