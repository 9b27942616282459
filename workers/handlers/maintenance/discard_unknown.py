"""Handler of `weirkeeper.discard_unknown`: jobs of kinds that nobody knows wait no longer. Hourly.

In a rolling deploy a job may be of a kind that only the other generation knows; it waits for that
one's processes. A kind whose queue merely has no process now is known: the application declares it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.app import load_app
from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed
from shared.postgres.queues.retention import discard_unknown
from workers.handlers.maintenance.pace import HOUR, enough


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed:
    """Discard; the result counts jobs. They can be retried by hand."""
    settings = Settings.load()
    app = load_app(settings.app)
    horizon = settings.unknown_kind_hours * HOUR
    with ctx.connection() as conn:
        count = discard_unknown(
            conn, list(app.all_kinds), list(app.all_queues), horizon, enough(ctx)
        )
    if count:
        ctx.log.warning("discarded %d jobs of kinds that nobody knows", count)
    return Completed({"jobs": count})
