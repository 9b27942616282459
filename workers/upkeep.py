"""What every queue process does beside its own jobs, on timers: nothing hangs on one of them.

Runs in the database's thread. Promotes jobs whose time has come, takes jobs back from dead owners,
compares what the database thinks we hold with what we do hold, marks jobs that have started, stops
jobs whose end was asked for, gives claims back that wait too long here, lets jobs go on that wait
for a concurrency key in vain, and watches that claimable jobs are claimed.

A process at rest costs the database little: the look at `scheduled`, which nothing can replace,
tells on the way whether the others would find anything, and they ask nothing while they would not.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from shared.jobs.work import Around, Claim, DeadOwner, Held, Work
from workers.assignment import Assignment
from workers.executor import Executor
from workers.producer import Producer
from workers.scheduler import LOOK, Scheduler

PROMOTE = 1.0  # seconds between looks at `scheduled` when nothing is known to be due
RESCUE = 2.0
AROUND = RESCUE - PROMOTE / 2  # seconds: with every second look at `scheduled`, one around
FRESH = 2 * RESCUE  # seconds that what the last look around saw is believed; with LOOK less than 10
RECONCILE = 10.0
UNPARK = 10.0
LEARN = 10.0
MARK = 0.25
PROGRESS = 1.0
CANCEL = 1.0  # seconds; a notice asks for the look at once
STALE = 1.0  # seconds that a claim may wait in the buffer while all children are busy
WATCH = 10.0
STUCK = 60.0  # seconds that a claimable job may wait while children are free and none is claimed

log = logging.getLogger(__name__)


class ClaimsStuck(RuntimeError):
    """Claimable jobs, free children, and no claim: "up but idle", the worst state."""


@dataclass(slots=True)
class Timer:
    """Something to do every `seconds`, or sooner when it says so.

    Attributes:
        holding: it is about claims that are held: while there are none, nobody wakes for it.
    """

    seconds: float
    act: Callable[[Work], float | None]
    holding: bool = False
    at: float = 0.0


class Upkeep:
    """Timers of one queue process.

    Attributes:
        held: claims that this process holds, by job id; owned by the database's thread.

    Args:
        assignment: what this process is there for.
        executor: for what runs and what waits.
        producer: told when there may be something to claim.
        kill_bearers: ends what dead owners left on this host, by its marks.
    """

    def __init__(
        self,
        assignment: Assignment,
        executor: Executor,
        producer: Producer,
        kill_bearers: Callable[[set[str]], None],
    ) -> None:
        self.held: dict[int, Claim] = {}
        self._owed: list[Claim] = []  # claims that nobody here has any more, to be given back
        self._queue = assignment.name
        self._kinds = sorted(assignment.kinds)
        self._executor = executor
        self._producer = producer
        self._kill_bearers = kill_bearers
        self._rescued = assignment.instruments.jobs_rescued_total
        self._instruments = assignment.instruments
        self._poisonous: list[tuple[str, str]] = []
        self._clock = assignment.clock
        self._promotion = Timer(PROMOTE, self._promote)
        self._rescue_timer = Timer(RESCUE, self._rescue)
        self._scheduler, self._ticking = Scheduler(assignment), Timer(LOOK, self._tick)
        self._around, self._looked = Around(), -math.inf  # what was seen last, and when
        self._cancellation = Timer(CANCEL, self._cancel, holding=True)
        self._attended = self._clock.monotonic()  # when last no claimable job was left waiting
        self._timers = [
            self._promotion,  # first: it tells what the next need not look for
            self._rescue_timer,
            self._ticking,
            Timer(RECONCILE, self._reconcile),
            Timer(UNPARK, self._unpark),
            Timer(LEARN, lambda work: work.learn()),
            Timer(MARK, self._mark, holding=True),
            Timer(PROGRESS, self._mark_progress, holding=True),
            self._cancellation,
            Timer(STALE / 2, self._give_back_stale, holding=True),
            Timer(WATCH, self._watch),
        ]

    def connected(self, work: Work) -> None:
        """Sessions were opened: a claim's reply may have been lost, or a claim itself."""
        self.give_back(work, self._executor.take_back())
        self._attended = self._clock.monotonic()
        self._looked = -math.inf  # now everything is looked at, whatever was seen before
        for timer in self._timers:
            timer.at = 0.0

    def expect(self, delay: float) -> None:
        """A job will be due in `delay` seconds."""
        self._promotion.at = min(self._promotion.at, self._clock.monotonic() + delay)

    def cancel_soon(self) -> None:
        """The end of a running job was asked for."""
        self._cancellation.at = 0.0

    def turn(self, work: Work) -> None:
        """Do what is due."""
        self.give_back(work, ())
        self._poisonous += self._executor.poisonous()
        while self._poisonous:
            self._quarantine(work, *self._poisonous[0])
            self._poisonous.pop(0)
        for timer in self._timers:
            now = self._clock.monotonic()
            if timer.at <= now:
                timer.at = now + timer.seconds
                sooner = timer.act(work)
                if sooner is not None:
                    timer.at = min(timer.at, now + max(0.0, sooner))

    def waits(self) -> float:
        """Seconds until something is due."""
        due = min(t.at for t in self._timers if self.held or not t.holding)
        return max(0.0, due - self._clock.monotonic())

    @property
    def owes(self) -> bool:
        """Whether claims are to be given back yet."""
        return bool(self._owed)

    def give_back(self, work: Work, claims: Sequence[Claim]) -> None:
        """Return claims that no child has begun; what fails is done with the next turn.

        Until then they are held as far as the reconciliation knows, so nobody else would do it.
        """
        self._owed += claims
        if self._owed:
            work.give_back(self._owed)
            for claim in self._owed:
                if self.held.get(claim.job_id) is claim:
                    del self.held[claim.job_id]
            self._owed.clear()

    def _promote(self, work: Work) -> None:
        now = self._clock.monotonic()
        moved, due, around = work.promote(look=now - self._looked >= AROUND)
        if around is not None:
            if around.others and not self._around.others:
                self._rescue_timer.at = 0.0
            if around.ticks and not self._around.ticks:
                self._ticking.at = 0.0
            self._around, self._looked = around, now
        if moved:
            self._producer.look("wake")
        if due is not None:
            self.expect(due)

    def _seen(self) -> Around:
        """What there is to look after; everything when nothing newer is known.

        The look may fail where the others would not: they do not wait for it.
        """
        fresh = self._clock.monotonic() - self._looked < FRESH
        return self._around if fresh else Around()

    def _tick(self, work: Work) -> float | None:
        return self._scheduler.act(work) if self._seen().ticks else None

    def _rescue(self, work: Work) -> None:
        if not self._seen().others:
            return
        dead = work.dead_owners()
        if not dead:
            return
        self._kill_bearers({owner.mark for owner in dead if owner.mark})
        self._count(work.rescue(dead), dead)
        self._producer.look("wake")

    def _count(self, rescued: Mapping[str, int], dead: Sequence[DeadOwner]) -> None:
        for reason, number in rescued.items():
            epochs = [owner.epoch for owner in dead if owner.reason == reason]
            log.warning("took %d jobs back from dead owners %s (%s)", number, epochs, reason)
            self._rescued.labels(self._queue, reason).inc(number)

    def _reconcile(self, work: Work) -> None:
        """Rows of ours that we do not hold: their claim was committed, its reply was lost.

        No claim is under way: claims are made in this thread, between two turns. Where neither side
        has any, the last look around has compared them already.
        """
        if not (self.held or self._seen().ours):
            return
        unheard = [row for row in work.held() if not self._holds(row)]
        if unheard:
            given = work.give_back(unheard)
            log.warning("gave %d jobs back that this process never heard of", given)
            self._rescued.labels(self._queue, "unheard").inc(given)
            self._producer.look("wake")

    def _unpark(self, work: Work) -> None:
        if not self._seen().parked:
            return
        freed = work.unpark()
        if freed:
            log.warning("%d jobs waited for a concurrency key in vain; they go on", freed)

    def _holds(self, row: Held) -> bool:
        claim = self.held.get(row.job_id)
        return claim is not None and claim.token == row.token

    def _quarantine(self, work: Work, kind: str, why: str) -> None:
        """Have every process skip the lanes of a kind that kills its children."""
        if work.quarantine(kind, why):
            log.error("kind %s is quarantined: %s", kind, why, extra={"kind": kind})
            self._instruments.quarantines_total.labels(self._queue, kind).inc()
        self.give_back(work, self._executor.take_back())
        self._producer.look("free")

    def _mark(self, work: Work) -> None:
        work.mark_started(self._executor.unmarked())

    def _mark_progress(self, work: Work) -> None:
        work.mark_progress(self._executor.marks())

    def _cancel(self, work: Work) -> None:
        """Each look tells again of jobs that still run: what was missed once is made good."""
        asked = work.to_cancel() if self.held else []
        if asked:
            # Given back, a job whose end was asked for ends; the others are claimed again.
            self.give_back(work, self._executor.cancel(asked))
            self._producer.look("free")

    def _give_back_stale(self, work: Work) -> None:
        self.give_back(work, self._executor.take_back(older=STALE))

    def _watch(self, work: Work) -> None:
        """Judge by many looks: what waits when children become free is for the very next claim.

        So it is when a pause ends, or when the database is back.
        """
        now = self._clock.monotonic()
        oldest = self._oldest(work.oldest)
        if oldest is None:
            self._attended = now
            return
        idle = now - max(self._attended, self._producer.last_claim)
        if min(idle, oldest) < STUCK:
            return
        free = self._oldest(work.oldest_free)
        if free is None or free < STUCK:  # somebody else's transaction has the old ones locked
            self._attended = now
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
