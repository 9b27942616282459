"""The timer that starts periodic jobs, in every queue process, for the kinds that it knows.

Runs in the database's thread, called by the upkeep. No leader: any number of processes may look at
the same tick, and the database lets exactly one of them start it. Must never keep a schedule in
memory: the next tick stands in the database.
"""

from __future__ import annotations

from shared.jobs.work import Work
from workers.assignment import Assignment

LOOK = 5.0  # seconds between looks at most: the database's clock may jump, ticks may be declared


class Scheduler:
    """Starts what is due.

    Args:
        assignment: what this process is there for.
    """

    def __init__(self, assignment: Assignment) -> None:
        self._kinds = sorted(assignment.kinds)

    def act(self, work: Work) -> float | None:
        """Start every tick that is due; return seconds until the next, None = none is known."""
        return work.tick(self._kinds)
