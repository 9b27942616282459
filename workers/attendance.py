"""Whether claimable jobs are claimed: "up but idle" is the worst state, and is an error.

Runs in the database's thread, on one of the upkeep's timers. Counts only what this process could
claim, and only while it has children free.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shared.jobs.work import Work
from workers.assignment import Assignment
from workers.executor import Executor
from workers.producer import Producer

WATCH = 10.0  # seconds between looks
STUCK = 60.0  # seconds that a claimable job may wait while children are free and none is claimed


class ClaimsStuck(RuntimeError):
    """Claimable jobs, free children, and no claim: "up but idle", the worst state."""


class Attendance:
    """The watch on claims of one queue process.

    Args:
        assignment: what this process is there for.
        executor: knows whether children are free.
        producer: knows when something was last claimed, and why nothing is.
    """

    def __init__(self, assignment: Assignment, executor: Executor, producer: Producer) -> None:
        self._queue = assignment.name
        self._kinds = sorted(assignment.kinds)
        self._clock = assignment.clock
        self._executor = executor
        self._producer = producer
        self._attended = self._clock.monotonic()  # when last no claimable job was left waiting

    def attended(self) -> None:
        """What waits now is for the very next claim."""
        self._attended = self._clock.monotonic()

    def look(self, work: Work) -> None:
        """Judge by many looks: what waits when children become free is for the very next claim.

        So it is when a pause ends, or when the database is back.

        Raises:
            ClaimsStuck: it has been so for STUCK seconds.
        """
        oldest = self._oldest(work.oldest)
        if oldest is None:
            self.attended()
            return
        idle = self._clock.monotonic() - max(self._attended, self._producer.last_claim)
        if min(idle, oldest) < STUCK:
            return
        free = self._oldest(work.oldest_free)
        if free is None or free < STUCK:  # somebody else's transaction has the old ones locked
            self.attended()
            return
        raise ClaimsStuck(
            f"queue {self._queue}: a job has been claimable for {free:.0f} s, children are "
            f"free, and nothing was claimed for {idle:.0f} s"
        )

    def _oldest(self, look: Callable[[Sequence[str]], float | None]) -> float | None:
        """Seconds that a job has waited which this process could claim; None = there is none."""
        if self._producer.excused or self._executor.room() < 1:
            return None
        closed = self._producer.cut.kinds
        return look([kind for kind in self._kinds if kind not in closed])
