"""Handler of `weirkeeper.prune_records`: rows of dead processes, past stops and ticks. Hourly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed
from shared.postgres.queues.retention import prune_records
from workers.handlers.maintenance.pace import HOUR, enough


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed:
    """Prune; the result counts rows by table."""
    age = Settings.load().keep_ended_hours * HOUR
    with ctx.connection() as conn:
        return Completed(prune_records(conn, age, enough(ctx)))
