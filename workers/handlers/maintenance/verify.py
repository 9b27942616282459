"""Handler of `weirkeeper.verify`: do the rows keep the engine's promises? Daily; mends nothing.

A violation ends the job as discarded, so that it is seen and told of; `weirkeeper verify` shows
all of it and can mend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from shared.config.settings import Settings
from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Discard
from shared.postgres.inspection.verify import violations
from workers.handlers.maintenance.pace import HOUR


def handle(ctx: Context, _args: Mapping[str, Any]) -> Completed | Discard:
    """Look; Completed when there is no violation."""
    kept = Settings.load().keep_completed_hours * HOUR
    with ctx.connection() as conn:
        found = violations(conn, kept)
    if not found:
        return Completed()
    counts = Counter(violation.rule for violation in found)
    said = ", ".join(f"{count} × {rule}" for rule, count in sorted(counts.items()))
    return Discard(f"rows break the engine's promises: {said}; run weirkeeper verify")
