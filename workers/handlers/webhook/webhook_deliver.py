"""Handler of `webhook.deliver` {"delivery_id": …}: one request to one endpoint.

Lease, short reads, the request without a connection, settle: the lease promises that at most one
request to an endpoint is in flight, and the settle, fenced by its token, that a late one changes
nothing. A child that dies in between leaves a lease that runs out, and a delivery that is tried
again under the same id.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from shared.clock import SYSTEM
from shared.failpoints import fp
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Discard, Outcome, Snooze
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.webhooks.port import Lease, Standing
from shared.webhooks.times import LEASE
from workers.handlers.webhook.request import caller, discards, prepare
from workers.handlers.webhook.verdict import Round, outcome, report
from workers.sideeffects.http.exchange import Exchange

MARGIN = 2.0  # seconds of the lease that are kept for the settle
LEAST = 3.0  # seconds: with less of the lease left, nothing is begun
AGAIN = 1.0  # seconds until another look, where nobody knows better


def handle(ctx: Context, args: Mapping[str, Any]) -> Outcome:
    """Send one delivery, or find out when it may be sent."""
    given = args.get("delivery_id")
    if not isinstance(given, str) or not given.isdigit():
        return Discard(f"delivery_id: expected the id of a delivery; got {given!r}")
    fp("webhook_begun")
    found = attempt(ctx, int(given))
    return _later(found) if isinstance(found, Standing) else found


def attempt(ctx: Context, delivery_id: int) -> Outcome | Standing:
    """Send a delivery under its endpoint's lease; a Standing says why there was none."""
    asked = SYSTEM.monotonic()
    with ctx.connection(pristine=True) as conn:
        granted = PostgresDeliveries(conn).lease(delivery_id, LEASE)
    if isinstance(granted, Standing):
        return granted
    fp("webhook_leased")
    return _send(ctx, granted, asked + LEASE - MARGIN)


def _later(standing: Standing) -> Outcome:
    """Nothing is sent now. A held one waits under its endpoint's key, once it is claimed again."""
    if standing.why in ("gone", "ended"):
        return Completed({"sent": False, "why": standing.why})
    if standing.parks or standing.why == "disabled":
        return Snooze(0)
    return Snooze(AGAIN if standing.seconds is None else max(0.0, standing.seconds))


def _send(ctx: Context, lease: Lease, until: float) -> Outcome:
    begun = SYSTEM.wall()
    try:
        outgoing = prepare(lease, begun)
        client, limits = caller()
    except BaseException:  # our own fault is a job error, never an attempt of the endpoint
        _release(ctx, lease)
        raise
    if until - SYSTEM.monotonic() < LEAST:
        _release(ctx, lease)
        return Snooze(0)
    exchange = client.send(outgoing, limits=limits, until=until)
    fp("webhook_answered")
    ctx._called(sum(exchange.times.values()))  # noqa: SLF001  (not for applications)
    return _settle(ctx, lease, Round(lease, outgoing.url, begun, discards()), exchange)


def _settle(ctx: Context, lease: Lease, this: Round, exchange: Exchange) -> Outcome:
    written = report(this, exchange, SYSTEM.wall())
    elsewhere = _host(exchange.header("location"))
    if elsewhere:
        ctx.log.info("webhook %s: it was sent to %s", written.code, elsewhere)
    if exchange.hidden:
        ctx.log.info("webhook %s: %s", written.code, exchange.hidden)
    with ctx.connection(pristine=True) as conn:
        settled = PostgresDeliveries(conn).settle(lease, written)
    fp("webhook_settled")
    if not settled.held:
        ctx.log.warning("the lease was lost before the answer was written: it is sent again")
    return outcome(written, settled, strict=lease.strict)


def _host(location: str) -> str:
    """Where a redirect leads; the rest of it may hold a token. "" = nowhere that can be read."""
    with suppress(ValueError):
        return urlsplit(location).hostname or ""
    return ""


def _release(ctx: Context, lease: Lease) -> None:
    with ctx.connection(pristine=True) as conn:
        PostgresDeliveries(conn).release(lease)
