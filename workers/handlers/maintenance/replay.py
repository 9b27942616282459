"""Handler of `weirkeeper.replay`: delivers the events of a replay, batch by batch.

Each batch is a transaction, so that whoever is killed in the middle is followed by one that goes
on. The operation events.replay plans and starts, events.replay_cancel ends it between two batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Snooze
from shared.postgres.events import replays
from workers.handlers.maintenance.pace import AGAIN, enough


def handle(ctx: Context, args: Mapping[str, Any]) -> Completed | Snooze:
    """Deliver; the result tells how it ended."""
    replay_id = str(args["replay_id"])
    left = -1

    def told(number: int) -> None:
        nonlocal left
        left = number

    with ctx.connection() as conn:
        whole = replays.deliver(conn, replay_id, enough(ctx), told)
    ctx.log.info("replay %s: %d events left", replay_id, left)
    return Completed({"left": left}) if whole else Snooze(AGAIN)
