"""How declared kinds stand, counted within bounds. Part of shared.postgres.inspection.inspector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.jobs.inspect import Overview
from shared.jobs.states import STATES
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.statements import statement
from shared.stats import CAP


def overviews(conn: Connection, kind: str | None) -> Sequence[Overview]:
    """Every declared kind, or this one, by name; an unknown one is no row.

    Counts stop at 10,000; completed jobs are counted among the newest 10,000 entries of the log.
    """
    rows: Sequence[Any] = conn.execute(
        statement("inspector/overview"), {"kind": kind, "cap": CAP}
    ).fetchall()
    return [_overview(row) for row in rows]


def _overview(row: Any) -> Overview:
    name, queue, pending, running, retryable, completed, discarded, cancelled, age, paused = row
    counts = (pending, running, retryable, completed, discarded, cancelled)
    return Overview(
        kind=name,
        queue=queue,
        counts=dict(zip(STATES, counts, strict=True)),
        oldest_pending_age=None if age is None else max(0.0, age),
        paused=paused,
    )
