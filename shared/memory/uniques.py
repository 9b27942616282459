"""Which job keeps others like it out. The rules are those of shared.jobs.options.Unique."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from datetime import datetime
from typing import Any

from shared.errors import Conflict
from shared.jobs.options import Unique
from shared.memory.rows import UNCOMMITTED, Row


def hold_of(
    kind: str, args: Mapping[str, Any], unique: Unique | None, now: datetime
) -> Hashable | None:
    """What a unique job takes; equal for two jobs that keep each other out."""
    if unique is None:
        return None
    keys = None if unique.by is None else tuple(sorted(set(unique.by)))
    counted = args if keys is None else {key: args[key] for key in keys if key in args}
    period = None if unique.period is None else now.timestamp() // unique.period
    return (kind, keys, unique.period, period, json.dumps(counted, sort_keys=True))


class Uniques:
    """The holders."""

    def __init__(self) -> None:
        self._holders: dict[Hashable, Row] = {}

    def holder(self, hold: Hashable | None) -> Row | None:
        """Who holds it; a final job that need not keep it gives it up."""
        row = None if hold is None else self._holders.get(hold)
        if row is None or row.opts.unique is None:
            return None
        return row if row.where == UNCOMMITTED or row.state in row.opts.unique.states else None

    def take(self, row: Row) -> None:
        """Let a job keep others out, if it is to be unique.

        Raises:
            Conflict: another job does.
        """
        if row.hold is None:
            return
        other = self.holder(row.hold)
        if other is not None and other is not row:
            raise Conflict(
                f"job {row.id}: expected no other like it; job {other.id} is {other.state}; "
                "wait for its end, or cancel it",
                str(other.id),
            )
        self._holders[row.hold] = row

    def forget(self, row: Row) -> None:
        """Let go of what a job holds: it was rolled back."""
        if row.hold is not None and self._holders.get(row.hold) is row:
            del self._holders[row.hold]
