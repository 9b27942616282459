"""Handler of `weirkeeper.prune_events`: fanned-out events go when their time is over. Hourly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Snooze
from shared.postgres.queues.retention import prune_events
from workers.handlers.maintenance.pace import AGAIN, HOUR, enough


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed | Snooze:
    """Prune; the result counts events."""
    age = Settings.load().keep_events_hours * HOUR
    with ctx.connection() as conn:
        done = prune_events(conn, age, enough(ctx))
    ctx.log.info("pruned %d events", done.rows)
    return Completed({"events": done.rows}) if done.whole else Snooze(AGAIN)
