"""Ends that are not written yet: when to write them, and never to lose one.

Before this: the executor's verdicts, from the pool's thread. After it: Work.finish, in the
database's thread. A batch stays here until the database has answered, however often it takes;
written twice, the second time is fenced. One row that the database refuses is written alone,
without what it told, so that it cannot hold up the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from shared.errors import DatabaseRefused
from shared.jobs.work import Finish, Work
from workers.assignment import Assignment
from workers.executor import Done
from workers.verdicts import bare

FLUSH_AT = 64  # ends
FLUSH_AFTER = 0.005  # seconds
BATCH = 500  # ends in one transaction

log = logging.getLogger(__name__)


class Completer:
    """Collects ends and writes them.

    Args:
        assignment: what this process is there for.
        wake: wakes the database's loop.
    """

    def __init__(self, assignment: Assignment, wake: Callable[[], None]) -> None:
        self._queue = assignment.name
        self._wake = wake
        self._instruments = assignment.instruments
        self._clock = assignment.clock
        self._pending: list[Done] = []
        self._urgent = False
        self._settle = assignment.instruments.job_settle_seconds.labels(self._queue)

    def put(self, done: Done) -> None:
        """Take an end, from the pool's thread."""
        self._pending.append(done)
        self._urgent = self._urgent or done.claim.awaited
        if self._urgent or len(self._pending) in (1, FLUSH_AT):
            self._wake()

    @property
    def pending(self) -> int:
        """Ends not written yet."""
        return len(self._pending)

    def due_in(self) -> float | None:
        """Seconds until the next flush; None = nothing is pending."""
        if not self._pending:
            return None
        if self._urgent or len(self._pending) >= FLUSH_AT:
            return 0.0
        return max(0.0, self._pending[0].ended + FLUSH_AFTER - self._clock.monotonic())

    def flush(self, work: Work) -> list[Done]:
        """Write what is pending, at most BATCH.

        Returns:
            The runs that are done with.

        Raises:
            DatabaseUnavailable: nothing was forgotten: call it again.
        """
        self._urgent = False  # before the batch is taken: what comes meanwhile sets it again
        batch = self._pending[:BATCH]
        if not batch:
            return []
        try:
            held = self._write(work, [done.finish for done in batch])
        except BaseException:
            self._urgent = True
            raise
        del self._pending[: len(batch)]
        self._urgent = self._urgent or bool(self._pending)
        self._count(batch, held)
        return batch

    def _write(self, work: Work, finishes: Sequence[Finish]) -> int:
        try:
            return work.finish(finishes)
        except DatabaseRefused as error:
            if len(finishes) > 1:
                return sum(self._write(work, [finish]) for finish in finishes)
            log.warning("the end of job %s is stored without words: %s", finishes[0].job_id, error)
            return work.finish([bare(finishes[0])])

    def _count(self, batch: Sequence[Done], held: int) -> None:
        now = self._clock.monotonic()
        for done in batch:
            self._settle.observe(now - done.ended)
            self._instruments.job_attempts_total.labels(
                self._queue, done.claim.kind, done.finish.outcome
            ).inc()
        if held < len(batch):
            self._instruments.lease_lost_total.labels("job").inc(len(batch) - held)
            log.warning("%d ends came too late: their jobs had another owner", len(batch) - held)
