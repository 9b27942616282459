"""Between the two loops: claims come in from the database's thread, ends go back to it.

The pool's loop (main thread) feeds free children from the buffer, short jobs together, and turns
each end into a verdict. The database's loop asks how many claims there is room for. What both touch
is only touched in ways that are atomic, or by one side alone. Never does I/O but to wake the other
loop.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol

from shared.jobs.failures import place
from shared.jobs.inspect import Progress
from shared.jobs.work import Claim, Completed, Finish, Mark
from shared.telemetry.series import HistogramSeries
from workers.assignment import Assignment
from workers.crashes import BUDGET, Crashes
from workers.lengths import Lengths
from workers.pool.chunk import End, Job, Run
from workers.pool.pool import Pool
from workers.verdicts import verdict

AHEAD = 0.05  # seconds of work that may be claimed before a child is free
MOST_AHEAD = 2000  # claims in the buffer, however short jobs are
MOST_AT_ONCE = 1000  # claims asked for in one statement
TOGETHER = 0.005  # seconds of measured work that one child is given in one message
MOST_TOGETHER = 50  # jobs in one message
MOST_BYTES = 64 * 1024  # of such a message; a longer job goes alone
UNKNOWN = 1.0  # seconds that a job of a kind never seen is taken to last: it goes alone
MOST_MARKS = 10_000  # words on progress that are kept for the database
MARK_AFTER = 0.3  # seconds that a job runs before the database is told that it started

_OWN_ENDS = ("completed", "failed", "snoozed", "discarded")
_WORTH_A_LINE = ("failed", "timeout", "crashed")

log = logging.getLogger(__name__)

Waiting = tuple[Claim, float]  # a claim, and when it came


@dataclass(frozen=True, slots=True)
class Done:
    """A run that ended, for the completer."""

    claim: Claim
    finish: Finish
    ended: float  # monotonic


class Ends(Protocol):
    """What the executor tells of: the completer. In the pool's thread."""

    def put(self, done: Done) -> None:
        """A run ended."""
        ...

    def put_run(self, run: Completed, ended: float) -> None:
        """Jobs completed, with nothing to tell."""
        ...


class Executor:
    """Runs claims on the pool.

    Attributes:
        outcomes: how many runs ended, by outcome.

    Args:
        assignment: what this process is there for.
        ends: told of every run that ended.
        wake: wakes the database's loop when there is room for more claims.
    """

    def __init__(self, assignment: Assignment, ends: Ends, wake: Callable[[], None]) -> None:
        self._assignment = assignment
        self._ends = ends
        self._wake_database = wake
        self._clock = assignment.clock
        instruments, queue = assignment.instruments, assignment.name
        self._pickup = instruments.job_pickup_seconds.labels(queue)
        self._run_seconds = instruments.job_run_seconds
        self._request_seconds = instruments.webhook_request_seconds
        self._series: dict[str, HistogramSeries] = {}
        self._buffer: deque[Waiting] = deque()
        self._running: dict[int, Claim] = {}
        self._unmarked: deque[tuple[list[Claim], float]] = deque()
        self._stops: deque[tuple[int, str]] = deque()
        self._stopping = 0  # id of the job whose end the pool is asked for just now
        self._lengths = Lengths(UNKNOWN)
        self._marks: deque[Mark] = deque(maxlen=MOST_MARKS)
        self._crashes = Crashes()
        self._poisonous: deque[tuple[str, str]] = deque()
        self._alone = assignment.alone
        self._pool: Pool | None = None
        self._closed = False
        self._room = 0
        self.outcomes: Counter[str] = Counter()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    # The pool's thread.

    def attach(self, pool: Pool) -> None:
        """Run on this pool; its loop watches for what comes in."""
        self._pool = pool
        pool.watch(self._wake, self._woken)

    def tend(self) -> None:
        """After a turn of the pool: feed free children, ask for claims if there is more room."""
        self.feed()
        room = self.room()
        if room > self._room:
            self._wake_database()
        self._room = room

    def close(self) -> None:
        """Begin no more jobs: what is buffered, or still comes in, is to be taken back."""
        self._closed = True
        if self._pool is not None:
            self._pool.take_back()

    def feed(self) -> None:
        """Hand what is buffered to free children."""
        pool = self._pool
        while pool is not None and pool.free and self._buffer and not self._closed:
            self._hand_over(pool, self._chunk(ceil(len(self._buffer) / pool.free)))

    def _chunk(self, most: int) -> list[Waiting]:
        """What the next child is given: short jobs together, any other alone."""
        chunk: list[Waiting] = []
        seconds, size = 0.0, 0
        while len(chunk) < min(most, MOST_TOGETHER):
            try:
                waiting = self._buffer.popleft()
            except IndexError:
                break
            claim = waiting[0]
            seconds += self._lengths.of(claim.kind)
            size += len(claim.line)
            alone = claim.awaited or claim.kind in self._alone
            if chunk and (alone or seconds > TOGETHER or size > MOST_BYTES):
                self._buffer.appendleft(waiting)
                break
            runs_already = claim.job_id in self._running
            self._running[claim.job_id] = claim
            if not runs_already:
                chunk.append(waiting)
            # Else a crash of Postgres lost a claim that was committed asynchronously: the job was
            # in line again while our child runs it. It goes on, under the new claim.
            if alone:
                break
        return chunk

    def _hand_over(self, pool: Pool, chunk: Sequence[Waiting]) -> None:
        if not chunk:
            return
        claims = [claim for claim, _ in chunk]
        try:
            pool.give(claims)
        except IndexError:  # the last free child turned out to be dead
            for claim in claims:
                del self._running[claim.job_id]
            self._buffer.extendleft(reversed(chunk))
        else:
            now = self._clock.monotonic()
            self._pickup.observe_each([claim.ready_age + now - came for claim, came in chunk])
            self._unmarked.append((claims, now))

    def ended(self, end: End) -> None:
        """A run ended that has something to tell: judge it."""
        claim = self._running.pop(end.key)
        self._measure(claim.kind, end.seconds, 1)
        if end.outside is not None:
            self._request_seconds.observe(end.outside)
        kind = self._assignment.kinds[claim.kind]
        finish = verdict(claim, end, kind.backoff, kind.outage)
        self.outcomes[finish.outcome] += 1
        self._judge(claim, end)
        if end.outcome in _WORTH_A_LINE or finish.horizon is not None:
            _tell(claim, end, finish)
        self._ends.put(Done(claim, finish, self._clock.monotonic()))

    def completed(self, run: Run) -> None:
        """Jobs completed in one child, with nothing more to tell."""
        claims = [self._running.pop(job.job_id) for job in run.jobs]
        each = run.seconds / len(claims)
        kinds = [claim.kind for claim in claims]
        for kind in set(kinds):
            self._crashes.lived(kind)
            self._measure(kind, each, kinds.count(kind))
        self.outcomes["completed"] += len(claims)
        self._ends.put_run(Completed(claims, run.started_at), self._clock.monotonic())

    def returned(self, jobs: Sequence[Job]) -> None:
        """No child has begun these: they are next in line, or end here if that was asked for."""
        now = self._clock.monotonic()
        back: list[Waiting] = []
        for job in jobs:
            if job.job_id == self._stopping:
                why = "cancelled by hand before it was started"
                self.ended(End(job.job_id, "interrupted", None, 0.0, error=why, cause="by_hand"))
            else:
                back.append((self._running.pop(job.job_id), now))
        self._buffer.extendleft(reversed(back))

    def _woken(self) -> None:
        os.eventfd_read(self._wake)
        while self._pool is not None and self._stops:
            self._stopping, reason = self._stops.popleft()
            self._pool.stop(self._stopping, reason)
        self._stopping = 0
        self.feed()

    def _measure(self, kind: str, seconds: float, times: int) -> None:
        self._lengths.learn(kind, seconds, times)
        if kind not in self._series:
            self._series[kind] = self._run_seconds.labels(self._assignment.name, kind)
        self._series[kind].observe(seconds, times)

    def _judge(self, claim: Claim, end: End) -> None:
        """Whether the kind kills its children: what we killed, or who, does not count."""
        if end.outcome in _OWN_ENDS:
            self._crashes.lived(claim.kind)
        elif end.death and self._crashes.died(claim.kind, claim.job_id):
            self._poisonous.append((claim.kind, f"{BUDGET} children in a row died: {end.error}"))
            self._wake_database()

    def progressed(self, job_id: int, n: float, of: float | None) -> None:
        """Take how far a running job is."""
        claim = self._running.get(job_id)
        if claim is not None:
            self._marks.append(Mark(job_id, claim.token, Progress(n, of)))

    # The database's thread.

    def room(self) -> int:
        """How many claims it can use: one per free child, and a little work ahead of them.

        None until half of that work is done: claims are cheap by the hundred.
        """
        pool = self._pool
        if pool is None or self._closed:
            return 0
        children = self._assignment.queue.children
        ahead = min(MOST_AHEAD, int(children * AHEAD / max(self._lengths.longest, 1e-5)))
        waiting = len(self._buffer)
        if waiting > max(pool.free, ahead // 2):
            return 0
        return max(0, min(MOST_AT_ONCE, pool.free + ahead - waiting))

    @property
    def waiting(self) -> int:
        """Claims in the buffer. From any thread."""
        return len(self._buffer)

    def put(self, claims: list[Claim]) -> None:
        """Take claims in."""
        now = self._clock.monotonic()
        self._buffer.extend([(claim, now) for claim in claims])
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
            self._lengths.at_least(older)
        return taken

    def stop(self, job_ids: Collection[int], reason: str) -> list[Claim]:
        """Have running jobs stopped; if one does not run, take all claims out that wait.

        Args:
            job_ids: of the jobs.
            reason: "cancelled", or "interrupted" when it is not the job's own end that is wanted.
        """
        self._stops.extend((job_id, reason) for job_id in job_ids)
        os.eventfd_write(self._wake, 1)
        return [] if all(job_id in self._running for job_id in job_ids) else self.take_back()

    def poisonous(self) -> list[tuple[str, str]]:
        """Kinds that have used up their crash budget, and how; each told of once."""
        found: list[tuple[str, str]] = []
        while self._poisonous:
            found.append(self._poisonous.popleft())
        return found

    def marks(self) -> list[Mark]:
        """How far running jobs are, of each the last word since this was asked before."""
        last: dict[int, Mark] = {}
        while self._marks:
            mark = self._marks.popleft()
            last[mark.job_id] = mark
        return list(last.values())

    def unmarked(self) -> list[Claim]:
        """Claims that have been running for a moment, each told of once."""
        limit = self._clock.monotonic() - MARK_AFTER
        found: list[Claim] = []
        while self._unmarked and self._unmarked[0][1] <= limit:
            claims, _ = self._unmarked.popleft()
            found += [claim for claim in claims if self._running.get(claim.job_id) is claim]
        return found


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
