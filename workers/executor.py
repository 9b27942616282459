"""Between the two loops: claims come in from the database's thread, ends go back to it.

The pool's loop (main thread) feeds free children from the buffer and turns each end into a
verdict. The database's loop asks how many claims there is room for. What both touch is only
touched in ways that are atomic, or by one side alone. Never does I/O but to wake the other loop.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared.jobs.failures import place
from shared.jobs.work import Claim, Finish
from workers.assignment import Assignment
from workers.pool.pool import Pool
from workers.pool.slot import End, Job
from workers.verdicts import verdict

AHEAD = 0.05  # seconds of work that may be claimed before a child is free
MOST_AHEAD = 100  # claims in the buffer, however short jobs are
SLOW_DECAY = 0.1  # weight of a new, shorter job in the estimate of a job's length
MARK_AFTER = 0.3  # seconds that a job runs before the database is told that it started

_WORTH_A_LINE = ("failed", "timeout", "crashed")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """A run that ended, for the completer."""

    claim: Claim
    finish: Finish
    ended: float  # monotonic


class Executor:
    """Runs claims on the pool.

    Attributes:
        outcomes: how many runs ended, by outcome.

    Args:
        assignment: what this process is there for.
        done: called in the pool's thread with every run that ended.
        wake: wakes the database's loop when there is room for more claims.
    """

    def __init__(
        self, assignment: Assignment, done: Callable[[Done], None], wake: Callable[[], None]
    ) -> None:
        self._assignment = assignment
        self._done = done
        self._wake_database = wake
        self._clock = assignment.clock
        instruments, queue = assignment.instruments, assignment.name
        self._pickup = instruments.job_pickup_seconds.labels(queue)
        self._run_seconds = instruments.job_run_seconds
        self._buffer: deque[tuple[Claim, float]] = deque()
        self._running: dict[int, Claim] = {}
        self._unmarked: deque[tuple[Claim, float]] = deque()
        self._cancels: deque[int] = deque()
        self._length = 1.0  # seconds, estimate: quick to rise, slow to fall
        self._pool: Pool | None = None
        self._closed = False
        self._free = 0
        self.outcomes: Counter[str] = Counter()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    # The pool's thread.

    def attach(self, pool: Pool) -> None:
        """Run on this pool; its loop watches for what comes in."""
        self._pool = pool
        pool.watch(self._wake, self._woken)

    def tend(self) -> None:
        """After a turn of the pool: feed children that came up, ask for claims if there is room."""
        self.feed()
        free = 0 if self._pool is None else self._pool.free
        if free > self._free:
            self._wake_database()
        self._free = free

    def close(self) -> None:
        """Begin no more jobs: what is buffered, or still comes in, is to be taken back."""
        self._closed = True

    def feed(self) -> None:
        """Hand what is buffered to free children."""
        while self._pool is not None and self._pool.free and not self._closed:
            try:
                claim, arrived = self._buffer.popleft()
            except IndexError:
                return
            self._hand_over(self._pool, claim, arrived)

    def _hand_over(self, pool: Pool, claim: Claim, arrived: float) -> None:
        now = self._clock.monotonic()
        runs_already = claim.job_id in self._running
        self._running[claim.job_id] = claim
        if runs_already:
            # A crash of Postgres lost a claim that was committed asynchronously: the job was in
            # line again while our child runs it. It goes on, under the new claim.
            return
        try:
            pool.give(Job(claim.job_id, claim.line, claim.timeout))
        except IndexError:  # the last free child turned out to be dead
            del self._running[claim.job_id]
            self._buffer.appendleft((claim, arrived))
        else:
            self._pickup.observe(claim.ready_age + now - arrived)
            self._unmarked.append((claim, now))

    def ended(self, end: End) -> None:
        """A run ended: judge it, and give its child the next."""
        claim = self._running.pop(end.key)
        self._estimate(end.seconds)
        kind = self._assignment.kinds[claim.kind]
        finish = verdict(claim, end, kind.backoff, kind.outage)
        self._run_seconds.labels(self._assignment.name, claim.kind).observe(end.seconds)
        self.outcomes[finish.outcome] += 1
        if end.outcome in _WORTH_A_LINE or finish.horizon is not None:
            _tell(claim, end, finish)
        self._done(Done(claim, finish, self._clock.monotonic()))
        self.feed()
        if not self._buffer:
            self._wake_database()

    def _woken(self) -> None:
        os.eventfd_read(self._wake)
        while self._pool is not None and self._cancels:
            self._pool.cancel(self._cancels.popleft())
        self.feed()

    def _estimate(self, seconds: float) -> None:
        shorter = self._length + SLOW_DECAY * (seconds - self._length)
        self._length = max(seconds, shorter)

    # The database's thread.

    def room(self) -> int:
        """How many claims it can use: one per free child, and a little work ahead of them."""
        pool = self._pool
        if pool is None or self._closed:
            return 0
        ahead = min(
            MOST_AHEAD, int(self._assignment.queue.children * AHEAD / max(self._length, 1e-5))
        )
        return max(0, pool.free + ahead - len(self._buffer))

    def put(self, claims: list[Claim]) -> None:
        """Take claims in."""
        now = self._clock.monotonic()
        self._buffer.extend((claim, now) for claim in claims)
        os.eventfd_write(self._wake, 1)

    def take_back(self, older: float = 0.0) -> list[Claim]:
        """Take claims out again that no child has begun: those in the buffer since `older` s."""
        taken: list[Claim] = []
        limit = self._clock.monotonic() - older
        try:
            while self._buffer and self._buffer[0][1] <= limit:
                taken.append(self._buffer.popleft()[0])
        except IndexError:  # a child was faster
            pass
        if taken:
            self._length = max(self._length, older)
        return taken

    def cancel(self, job_ids: Sequence[int]) -> list[Claim]:
        """Have running jobs stopped; if one does not run, take all claims out that wait."""
        self._cancels.extend(job_ids)
        os.eventfd_write(self._wake, 1)
        return [] if all(job_id in self._running for job_id in job_ids) else self.take_back()

    def unmarked(self) -> list[Claim]:
        """Claims that have been running for a moment, each told of once."""
        limit = self._clock.monotonic() - MARK_AFTER
        found: list[Claim] = []
        while self._unmarked and self._unmarked[0][1] <= limit:
            claim = self._unmarked.popleft()[0]
            if claim.job_id in self._running:
                found.append(claim)
        return found

    @property
    def idle(self) -> bool:
        """Whether nothing is buffered or runs."""
        return not self._buffer and not self._running


def _tell(claim: Claim, end: End, finish: Finish) -> None:
    fields = {
        "job": str(claim.job_id),
        "kind": claim.kind,
        "attempt": claim.attempt + 1,
        "outcome": end.outcome,
        "state": finish.state,
        "at": place(str(end.evidence.get("stack", ""))),
    }
    log.warning("%s", end.error, extra={name: value for name, value in fields.items() if value})
