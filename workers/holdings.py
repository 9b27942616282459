"""The claims that a queue process holds, and what the database thinks it holds: kept the same.

Runs in the database's thread. Before this: claims that came in, ends that were written, claims that
no child has begun. After it: rows that nobody here has are given back; claims without a row are
taken back, or what runs for them is stopped. Must never decide how a job ended: an end whose row
is gone is fenced where it is written.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence

from shared.jobs.work import Claim, Held, Work
from workers.assignment import Assignment
from workers.executor import Executor
from workers.producer import Producer

log = logging.getLogger(__name__)


class Holdings:
    """What one loop holds.

    Attributes:
        held: claims that this process holds, by job id.

    Args:
        assignment: what this process is there for.
        executor: for what runs and what waits.
        producer: told when there may be something to claim.
    """

    def __init__(self, assignment: Assignment, executor: Executor, producer: Producer) -> None:
        self.held: dict[int, Claim] = {}
        self._owed: list[Claim] = []  # claims that nobody here has any more, to be given back
        self._queue = assignment.name
        self._executor = executor
        self._producer = producer
        self._rescued = assignment.instruments.jobs_rescued_total

    @property
    def owes(self) -> bool:
        """Whether claims are to be given back yet."""
        return bool(self._owed)

    def connected(self, work: Work) -> None:
        """Sessions were opened: a claim's reply may have been lost, or a claim itself.

        Before any end is written, which would be fenced where a claim was lost.
        """
        self.give_back(work, self._executor.take_back())
        self.compare(work)

    def over(self, claims: Sequence[Claim]) -> None:
        """The ends of these are written."""
        for claim in claims:
            if self.held.get(claim.job_id) is claim:
                del self.held[claim.job_id]

    def give_back(self, work: Work, claims: Sequence[Claim]) -> None:
        """Return claims that no child has begun; what fails is done with the next turn.

        Until then they are held as far as `compare` knows, so nobody else would do it.
        """
        self._owed += claims
        if self._owed:
            work.give_back(self._owed)
            self.over(self._owed)
            self._owed.clear()

    def compare(self, work: Work) -> None:
        """Compare what we hold with what the database thinks we hold; mend what differs.

        No claim is under way: claims are made in this thread, between two turns.
        """
        rows = work.held()
        tokens = {row.job_id: row.token for row in rows}
        unheard = [row for row in rows if not self._holds(row)]
        lost = [claim for claim in self.held.values() if tokens.get(claim.job_id) != claim.token]
        if unheard:
            self._give_unheard(work, unheard)
        if lost:
            back = work.retake(lost)
            if back:
                log.warning("took %d jobs back whose claims the database had lost", len(back))
                self._rescued.labels(self._queue, "retaken").inc(len(back))
            self._stop(work, [claim.job_id for claim in lost if claim.job_id not in back])

    def _holds(self, row: Held) -> bool:
        claim = self.held.get(row.job_id)
        return claim is not None and claim.token == row.token

    def _give_unheard(self, work: Work, rows: Sequence[Held]) -> None:
        """Their claim was committed, its reply was lost; or their end was written and lost."""
        given = work.give_back(rows)
        log.warning("gave %d jobs back that this process never heard of", given)
        self._rescued.labels(self._queue, "unheard").inc(given)
        self._producer.look("wake")

    def _stop(self, work: Work, jobs: Collection[int]) -> None:
        """They are others' now, or nobody's: each comparison tells again of what still runs."""
        if jobs:
            log.warning(
                "jobs %s have no row here any more (taken over, or removed): what runs is stopped",
                ", ".join(map(str, sorted(jobs)[:10])) + (" …" if len(jobs) > 10 else ""),
            )
            self.give_back(work, self._executor.stop(jobs, "interrupted"))
