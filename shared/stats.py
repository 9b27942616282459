"""PORT: numbers of the whole deployment, between who reads them and who tells them.

The adapter is shared.postgres.inspection.gauges; the metrics program tells them (metrics.families).
"""

from __future__ import annotations

from typing import NamedTuple

CAP = 10_000  # rows that one count looks at
CAP_ENDED = 2_000  # rows of the log that one count looks at, each with four look-ups


class Reading(NamedTuple):
    """One number. `name` without "weirkeeper_"; `labels` in the order of the family's names."""

    name: str
    labels: tuple[str, ...]
    value: float
