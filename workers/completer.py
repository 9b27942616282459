"""Ends that are not written yet: when to write them, and never to lose one.

Before this: the executor's verdicts, from the pool's thread. After it: Work.finish, in the
database's thread. A batch stays here until the database has answered, however often it takes;
written twice, the second time is fenced. One row that the database refuses is written alone,
without what it told, so that it cannot hold up the others.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from shared.errors import DatabaseRefused
from shared.jobs.work import Claim, Completed, Finish, Work
from workers.assignment import Assignment
from workers.executor import Done
from workers.verdicts import bare, plain

FLUSH_AT = 64  # ends
FLUSH_AFTER = 0.005  # seconds
BATCH = 1000  # ends in one transaction
DELIVERY = "webhook.deliver"  # the kind whose ends are told by a name of their own, too

log = logging.getLogger(__name__)


class Written(NamedTuple):
    """What the database has: claims that are over, and of those that told something their ends."""

    claims: Sequence[Claim]
    finishes: Sequence[Finish]


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
        self._attempts = assignment.instruments.job_attempts_total
        self._deliveries = assignment.instruments.webhook_deliveries_total
        self._clock = assignment.clock
        self._runs: list[tuple[Completed, float]] = []
        self._pending: list[Done] = []
        self._untold: list[Claim] = []  # written, but the same flush failed thereafter
        self._taken_in = 0  # ends; counted by the pool's thread alone
        self._written = 0  # of them; counted by the database's thread alone
        self._urgent = False
        self._settle = assignment.instruments.job_settle_seconds.labels(self._queue)

    def put(self, done: Done) -> None:
        """Take an end, from the pool's thread."""
        self._pending.append(done)
        self._taken(1, done.claim.awaited)

    def put_run(self, run: Completed, ended: float) -> None:
        """Take jobs that completed and have nothing to tell, from the pool's thread."""
        self._runs.append((run, ended))
        self._taken(len(run.claims), any(claim.awaited for claim in run.claims))

    def _taken(self, more: int, urgent: bool) -> None:
        before = self.pending
        self._taken_in += more
        self._urgent = self._urgent or urgent
        if self._urgent or not before or before < FLUSH_AT <= before + more:
            self._wake()

    @property
    def pending(self) -> int:
        """Ends not written yet."""
        return self._taken_in - self._written

    def due_in(self) -> float | None:
        """Seconds until the next flush; None = nothing is pending."""
        first = [done.ended for done in self._pending[:1]] + [at for _, at in self._runs[:1]]
        if not first:
            return None
        if self._urgent or self.pending >= FLUSH_AT:
            return 0.0
        return max(0.0, min(first) + FLUSH_AFTER - self._clock.monotonic())

    def flush(self, work: Work) -> Written:
        """Write what is pending: at most BATCH plain successes, and BATCH other ends.

        Returns:
            What is done with.

        Raises:
            DatabaseUnavailable: nothing was forgotten: call it again. What was written before that
                is told then: a crash of Postgres may take it back, and who takes the claim for
                held would never give it back.
        """
        self._urgent = False  # before anything is taken: what comes meanwhile sets it again
        try:
            self._untold += self._flush_runs(work)
            finishes = self._flush_rest(work)
        except BaseException:
            self._urgent = True
            raise
        self._urgent = self._urgent or bool(self._pending or self._runs)
        claims, self._untold = self._untold, []
        return Written(claims + [done.claim for done in finishes], [d.finish for d in finishes])

    def _flush_runs(self, work: Work) -> list[Claim]:
        batch: list[tuple[Completed, float]] = []
        claims: list[Claim] = []
        for run, ended in list(self._runs):
            if claims and len(claims) + len(run.claims) > BATCH:
                break
            batch.append((run, ended))
            claims += run.claims
        if not claims:
            return []
        runs = [run for run, _ in batch]
        try:
            held = work.complete(runs)
        except DatabaseRefused:
            held = self._write(work, [plain(c, run.started_at) for run in runs for c in run.claims])
        del self._runs[: len(batch)]
        self._written += len(claims)
        now = self._clock.monotonic()
        for run, ended in batch:
            self._settle.observe(now - ended, len(run.claims))
        for kind, times in Counter([claim.kind for claim in claims]).items():
            self._count(kind, "completed", times)
        self._late(len(claims) - held)
        return claims

    def _flush_rest(self, work: Work) -> list[Done]:
        batch = self._pending[:BATCH]
        if not batch:
            return []
        held = self._write(work, [done.finish for done in batch])
        del self._pending[: len(batch)]
        self._written += len(batch)
        now = self._clock.monotonic()
        for done in batch:
            self._settle.observe(now - done.ended)
            self._count(done.claim.kind, done.finish.outcome, 1)
        self._late(len(batch) - held)
        return batch

    def _count(self, kind: str, outcome: str, times: int) -> None:
        self._attempts.labels(self._queue, kind, outcome).inc(times)
        if kind == DELIVERY:
            self._deliveries.labels(outcome).inc(times)

    def _write(self, work: Work, finishes: Sequence[Finish]) -> int:
        try:
            return work.finish(finishes)
        except DatabaseRefused as error:
            if len(finishes) > 1:
                return sum(self._write(work, [finish]) for finish in finishes)
            log.warning("the end of job %s is stored without words: %s", finishes[0].job_id, error)
            return work.finish([bare(finishes[0])])

    def _late(self, ends: int) -> None:
        if ends:
            self._instruments.lease_lost_total.labels("job").inc(ends)
            log.warning("%d ends came too late: their jobs had another owner", ends)
