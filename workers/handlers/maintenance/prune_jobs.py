"""Handler of `weirkeeper.prune_jobs`: ended jobs go when their time is over. Hourly, idempotent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Snooze
from shared.postgres.queues.retention import prune_jobs
from workers.handlers.maintenance.pace import AGAIN, HOUR, enough


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed | Snooze:
    """Prune; the result counts jobs."""
    settings = Settings.load()
    completed, ended = settings.keep_completed_hours * HOUR, settings.keep_ended_hours * HOUR
    with ctx.connection() as conn:
        done = prune_jobs(conn, completed, ended, enough(ctx))
    ctx.log.info("pruned %d jobs", done.rows)
    return Completed({"jobs": done.rows}) if done.whole else Snooze(AGAIN)
