"""Handler of `weirkeeper.tidy_webhooks`: secrets, deliveries, replays whose time is over. Hourly.

Secrets that an older key of WEIRKEEPER_SECRET has sealed are sealed with the newest.
Deliveries whose job was ended by hand are ended, too, so that what the log says is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Snooze
from shared.postgres.webhooks.retention import tidy_webhooks
from shared.postgres.webhooks.sealing import seal_anew
from shared.webhooks.sealing import Sealer
from workers.handlers.maintenance.pace import AGAIN, HOUR, enough


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed | Snooze:
    """Tidy up; the result counts secrets, deliveries lost and old, replays, what was sealed."""
    settings = Settings.load()
    stop = enough(ctx)
    with ctx.connection() as conn:
        done = tidy_webhooks(conn, settings.keep_events_hours * HOUR, stop)
        done["sealed_anew"] = seal_anew(conn, Sealer(settings.sealing_keys), stop)
    return Completed(done) if done.pop("whole") else Snooze(AGAIN)
