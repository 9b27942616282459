"""Handler of `weirkeeper.probe_webhooks`: endpoints disabled for their failures are tried. Hourly.

Does nothing unless WEIRKEEPER_WEBHOOK_PROBE_HOURS says how long they are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Snooze
from shared.postgres.webhooks.deliveries import probe
from workers.handlers.maintenance.pace import AGAIN, HOUR

MOST = 500  # endpoints in one go


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed | Snooze:
    """Begin the probes that are due; the result counts them."""
    hours = Settings.load().probe_hours
    if not hours:
        return Completed({"probes": 0, "why": "WEIRKEEPER_WEBHOOK_PROBE_HOURS is 0"})
    with ctx.connection() as conn:
        begun, looked_at = probe(conn, hours * HOUR, MOST)
    return Snooze(AGAIN) if looked_at == MOST else Completed({"probes": begun})
