"""The crash budget: a kind whose jobs kill one child after the other is to be left alone. Pure.

Before this: the executor learns of every end. After it: a kind beyond its budget is quarantined in
the database, and all processes skip its lanes. One job that kills its children is ended by its
own attempts; so deaths count only when more than one job is involved.
"""

from __future__ import annotations

from collections import defaultdict

BUDGET = 5  # deaths in a row
LEAST_JOBS = 2


class Crashes:
    """Counts deaths of children in a row, by kind."""

    def __init__(self) -> None:
        self._deaths: defaultdict[str, list[int]] = defaultdict(list)

    def died(self, kind: str, job_id: int) -> bool:
        """A job's child died of it; whether that was one too many for its kind."""
        deaths = self._deaths[kind]
        deaths.append(job_id)
        if len(deaths) < BUDGET or len(set(deaths)) < LEAST_JOBS:
            return False
        del self._deaths[kind]  # counted anew when it is let run again
        return True

    def lived(self, kind: str) -> None:
        """A run of this kind ended and its child lived."""
        if self._deaths:
            self._deaths.pop(kind, None)
