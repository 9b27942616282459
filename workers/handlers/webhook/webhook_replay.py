"""Handler of `webhook.replay` {"replay_id": …}: events of a span of time are sent once more.

Started by an owner who saw the count first. One batch a run, then a snooze: what is new is never
kept waiting, a cancel holds from the next batch on, and a restart goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.context import Context
from shared.jobs.outcomes import Completed, Discard, Snooze
from shared.postgres.webhooks.replays import PostgresReplays
from shared.webhooks.body import encode

BATCH = 100  # events
GAP = 1.0  # seconds between batches


def handle(ctx: Context, args: Mapping[str, Any]) -> Completed | Snooze | Discard:
    """Send the next batch."""
    replay_id = args.get("replay_id")
    if not isinstance(replay_id, str) or not replay_id.isdigit():
        return Discard(f"replay_id: expected the id of a replay; got {replay_id!r}")
    with ctx.connection() as conn:
        more = PostgresReplays(conn).send_batch(int(replay_id), BATCH, encode)
    return Snooze(GAP) if more else Completed()
