"""ADAPTER: what is over among webhooks: expired secrets, lost deliveries, old logs. In batches.

Called by a handler on the maintenance queue, like shared.postgres.retention, off the claim path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement

BATCH = 1000


def tidy_webhooks(conn: Connection, age: float, enough: Callable[[], bool]) -> dict[str, int]:
    """Remove what is over: secrets, and deliveries and replays of `age` seconds ago; end lost ones.

    Args:
        conn: in autocommit mode.
        age: seconds that the log is kept.
        enough: asked between batches: stop here.

    Returns:
        How many secrets, lost, old and replays, by these names; "whole" is 0 when it was stopped.
    """
    done = {"secrets": 0, "lost": 0, "old": 0, "replays": 0, "whole": 1}
    texts = {
        "secrets": statement("endpoints/purge_secrets"),
        "lost": statement("deliveries/end_lost"),
        "old": statement("deliveries/prune"),
        "replays": statement("webhook_replays/prune"),
    }
    for name, text in texts.items():
        found = BATCH
        while found == BATCH:
            if enough():
                return {**done, "whole": 0}
            with translated():
                row: Any = conn.execute(text, {"age": age, "limit": BATCH}).fetchone()
            found = row[0]
            done[name] += found
    return done
