"""What every queue process does beside its own jobs, on timers: nothing hangs on one of them.

Runs in the database's thread. Promotes jobs whose time has come, takes jobs back from dead owners,
compares what the database thinks we hold with what we do hold (workers.holdings), marks jobs that
have started, stops jobs whose end was asked for, gives claims back that wait too long here, lets
jobs go on that wait for a concurrency key in vain, brings jobs here whose kind was moved to this
queue while they waited in another, and watches that claimable jobs are claimed
(workers.attendance).

A process at rest costs the database little: the look at `scheduled`, which nothing can replace,
tells on the way whether the others would find anything, and they ask nothing while they would not.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence

from shared.jobs.work import Around, DeadOwner, Work
from workers.assignment import Assignment
from workers.attendance import WATCH, Attendance
from workers.executor import Executor
from workers.holdings import Holdings
from workers.producer import Producer
from workers.scheduler import LOOK, Scheduler
from workers.timers import Timer, Timers

PROMOTE = 1.0  # seconds between looks at `scheduled` when nothing is known to be due
RESCUE = 2.0
AROUND = RESCUE - PROMOTE / 2  # seconds: with every second look at `scheduled`, one around
FRESH = 2 * RESCUE  # seconds that what the last look around saw is believed; with LOOK less than 10
RECONCILE = 10.0
UNPARK = 10.0
LEARN = 10.0
BRING = 10.0
MARK = 0.25
PROGRESS = 1.0
CANCEL = 1.0  # seconds; a notice asks for the look at once
STALE = 1.0  # seconds that a claim may wait in the buffer while all children are busy

log = logging.getLogger(__name__)


class Upkeep:
    """Timers of one queue process.

    Attributes:
        holdings: what it holds.

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
        self.holdings = Holdings(assignment, executor, producer)
        self._queue, self._kinds = assignment.name, tuple(assignment.kinds)
        self._executor = executor
        self._producer = producer
        self._kill_bearers = kill_bearers
        self._instruments = assignment.instruments
        self._poisonous: list[tuple[str, str]] = []
        self._clock = assignment.clock
        self._promotion = Timer(PROMOTE, self._promote)
        self._rescue_timer = Timer(RESCUE, self._rescue)
        self._scheduler, self._ticking = Scheduler(assignment), Timer(LOOK, self._tick)
        self._around, self._looked = Around(), -math.inf  # what was seen last, and when
        self._cancellation = Timer(CANCEL, self._cancel, holding=True)
        self._comparison = Timer(RECONCILE, self._reconcile)
        self._attendance = Attendance(assignment, executor, producer)
        each = [
            self._promotion,  # first: it tells what the next need not look for
            self._rescue_timer,
            self._ticking,
            self._comparison,
            Timer(UNPARK, self._unpark),
            Timer(LEARN, lambda work: work.learn()),
            Timer(BRING, self._bring),
            Timer(MARK, self._mark, holding=True),
            Timer(PROGRESS, self._mark_progress, holding=True),
            self._cancellation,
            Timer(STALE / 2, self._give_back_stale, holding=True),
            Timer(WATCH, self._attendance.look),
        ]
        self._timers = Timers(self._clock, each)

    def connected(self, work: Work) -> None:
        """Sessions were opened: nothing that was known of the database before may be believed."""
        self.holdings.connected(work)
        self._attendance.attended()
        self._looked = -math.inf
        self._timers.all_due()
        self._comparison.at = self._clock.monotonic() + RECONCILE  # it was made just now

    def expect(self, delay: float) -> None:
        """A job will be due in `delay` seconds."""
        self._promotion.at = min(self._promotion.at, self._clock.monotonic() + delay)

    def cancel_soon(self) -> None:
        """The end of a running job was asked for."""
        self._cancellation.at = 0.0

    def turn(self, work: Work) -> None:
        """Do what is due."""
        self.holdings.give_back(work, ())
        self._poisonous += self._executor.poisonous()
        while self._poisonous:
            self._quarantine(work, *self._poisonous[0])
            self._poisonous.pop(0)
        self._timers.turn(work)

    def waits(self) -> float:
        """Seconds until something is due."""
        return self._timers.waits(holding=bool(self.holdings.held))

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
            self._instruments.jobs_rescued_total.labels(self._queue, reason).inc(number)

    def _reconcile(self, work: Work) -> None:
        """Where neither side has any, the last look around has compared them already."""
        if self.holdings.held or self._seen().ours:
            self.holdings.compare(work)

    def _unpark(self, work: Work) -> None:
        if not self._seen().parked:
            return
        freed = work.unpark()
        if freed:
            log.warning("%d jobs waited for a concurrency key in vain; they go on", freed)

    def _bring(self, work: Work) -> float | None:
        """A batch a turn, so that claims come between them however many there are."""
        came, more = work.bring(self._kinds)
        if came:
            log.info("%d jobs came from other queues after their kinds", came)
            self._producer.look("wake")
        return 0.0 if more else None

    def _quarantine(self, work: Work, kind: str, why: str) -> None:
        """Have every process skip the lanes of a kind that kills its children."""
        if work.quarantine(kind, why):
            log.error("kind %s is quarantined: %s", kind, why, extra={"kind": kind})
            self._instruments.quarantines_total.labels(self._queue, kind).inc()
        self.holdings.give_back(work, self._executor.take_back())
        self._producer.look("free")

    def _mark(self, work: Work) -> None:
        work.mark_started(self._executor.unmarked())

    def _mark_progress(self, work: Work) -> None:
        work.mark_progress(self._executor.marks())

    def _cancel(self, work: Work) -> None:
        """Each look tells again of jobs that still run: what was missed once is made good."""
        asked = work.to_cancel() if self.holdings.held else []
        if asked:
            # Given back, a job whose end was asked for ends; the others are claimed again.
            self.holdings.give_back(work, self._executor.stop(asked, "cancelled"))
            self._producer.look("free")

    def _give_back_stale(self, work: Work) -> None:
        self.holdings.give_back(work, self._executor.take_back(older=STALE))
