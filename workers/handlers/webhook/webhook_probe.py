"""Handler of `webhook.probe` {"delivery_id": …}: whether a disabled endpoint works again.

Started by `weirkeeper.probe_webhooks`. Sends the oldest delivery that is held, under the same lease
as any other; a success enables the endpoint and lets go what it holds, a failure changes nothing.
Never tried again: the next probe is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Discard
from shared.webhooks.port import Standing
from workers.handlers.webhook.webhook_deliver import attempt


def handle(ctx: Context, args: Mapping[str, Any]) -> Completed | Discard:
    """Send it; the result says what came of it."""
    given = args.get("delivery_id")
    if not isinstance(given, str) or not given.isdigit():
        return Discard(f"delivery_id: expected the id of a delivery; got {given!r}")
    found = attempt(ctx, int(given))
    if isinstance(found, Standing):
        return Completed({"sent": False, "why": found.why})
    if isinstance(found, Completed):
        return found
    return Completed({"sent": False, "why": getattr(found, "reason", "put off")})
