"""How one periodic job of the memory adapter goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from shared.jobs.periodic import Periodic
from shared.memory.rows import Row


@dataclass(slots=True)
class Course:
    """How one periodic job goes: its next tick, and what it started."""

    declared: Periodic
    next_at: datetime
    last_started_at: datetime | None = None
    started: list[Row] = field(default_factory=list)
