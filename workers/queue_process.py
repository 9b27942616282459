"""One queue process: its loops built, started, run, drained and ended.

Before this: main, which built the adapters. The pool's loop runs here, in the main thread; the
database's loop, the watchman and the beat have threads of their own. Must never speak to the
database from the main thread while children run.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from shared.jobs.work import Work
from shared.services import exit_codes
from shared.services.service import ServiceThread
from shared.services.stop import StopSignal
from workers.assignment import Assignment
from workers.completer import Completer
from workers.database_loop import DatabaseLoop, Parts, Wake
from workers.drain import ENDING, Drain, Patience, Report
from workers.executor import Executor
from workers.pool.forkserver import ForkServer
from workers.pool.limits import Limits
from workers.pool.meters import PoolMeters
from workers.pool.mixed import Foreign, MixedPool
from workers.pool.tree import kill_bearers
from workers.pool.wear import Recycle
from workers.producer import Producer
from workers.upkeep import Upkeep
from workers.watchman import Watchman

TURN = 1.0  # seconds that the pool's loop waits at most when nothing is due
# Flush, loop and farewell share ENDING: a Postgres that stands still takes each to its bound, and
# the whole must stay below supervisord's stopwaitsecs (drain 20 + grace 2 + 1 + 4 of 30 s).
UNHEARD = 0.5  # seconds that the database's loop may take to end
FAREWELL = 2.0  # seconds that the last words to the database may take
LEAST = 0.5  # seconds for them however long the flush took

log = logging.getLogger(__name__)


class Life(Protocol):
    """How the process is seen by others; shared.postgres.life keeps the promises."""

    resting: bool  # others ask it to start nothing more

    def say(self, phase: str) -> None:
        """Tell the phase: ready, draining."""
        ...

    def beat_age(self) -> float:
        """Seconds since the last acknowledged beat was sent."""
        ...

    def stop(self) -> None:
        """Say that the process ended in order."""
        ...


@dataclass(frozen=True, slots=True)
class Outside:
    """What main gives a queue process of the world.

    Attributes:
        server: where children come from.
        open_work: opens the sessions for claims and wakes.
        life: registered and beating.
        write_drain: keeps a report: (seconds by phase, jobs by result).
        stop: its program's.
    """

    server: ForkServer
    open_work: Callable[[], Work]
    life: Life
    write_drain: Callable[[Mapping[str, float], Mapping[str, int]], None]
    stop: StopSignal


class QueueProcess:
    """Runs one queue."""

    def __init__(self, assignment: Assignment, outside: Outside, patience: Patience) -> None:
        self._assignment = assignment
        self._patience = patience
        self._stop = outside.stop
        self._life = outside.life
        self._write_drain = outside.write_drain
        self.watchman = Watchman(outside.stop, outside.server.kill, outside.life.beat_age)
        wake = Wake()
        completer = Completer(assignment, wake)
        self._executor = Executor(assignment, completer, wake)
        self._producer = Producer(assignment)
        upkeep = Upkeep(assignment, self._executor, self._producer, kill_bearers)
        parts = Parts(self._executor, self._producer, completer, upkeep)
        self._loop = DatabaseLoop(
            assignment, outside.open_work, parts, wake, self.watchman.database_turned
        )
        self._thread = ServiceThread("database", self._loop.run, self._stop.fail, wake)
        self._resting = False
        self._pool = MixedPool(
            outside.server,
            _limits(assignment, patience),
            self._executor,
            PoolMeters(assignment.instruments, assignment.name),
            Foreign(assignment.commands, assignment.queue.program, assignment.all_foreign),
        )
        self._executor.attach(self._pool)

    def run(self) -> int:
        """Run until a stop was asked for, and then in order to the end.

        Returns:
            An exit code.

        Raises:
            ConfigurationError: the children refuse to run at all.
            PoolBroken: none can be started.
        """
        self.watchman.service.start()
        self._pool.watch(self._stop.fileno(), lambda: None)
        report = Report()
        try:
            self._fill()
            self._work()
            report = self._drain()
        finally:
            self._end()
            self._farewell(report)
        return exit_codes.OK if report.complete else exit_codes.DRAIN_OVERRAN

    def _fill(self) -> None:
        """Start the children; one that cannot be had at once is no reason to wait for ever."""
        while not self._stop.requested and self._pool.ready < self._assignment.queue.children:
            self._turn(TURN)
        self.watchman.booted()

    def _work(self) -> None:
        if self._stop.requested:
            return
        self._thread.start()
        self._loop.soon(self._ready)
        while not self._stop.requested:
            self._turn(TURN)
            if self._life.resting != self._resting:
                self._rest()

    def _rest(self) -> None:
        """Start nothing more while a newer generation works; what runs goes on. Or work again."""
        self._resting = self._life.resting
        resting, phase = self._resting, "draining" if self._resting else "ready"
        log.info("resting: another generation works" if resting else "working again")
        self._assignment.instruments.draining.labels("queue").set(int(resting))

        def act() -> None:
            self._producer.rest(resting=resting)
            if resting:
                self._loop.hand_back(self._executor.take_back())
            self._life.say(phase)

        self._loop.soon(act)

    def _ready(self) -> None:
        self._life.say("ready")
        log.info("ready", extra={"children": self._assignment.queue.children})

    def _turn(self, seconds: float) -> None:
        self._pool.turn(seconds)
        self._executor.tend()
        self.watchman.pool_turned()

    def _drain(self) -> Report:
        self._pool.unwatch(self._stop.fileno())
        if self.watchman.fenced:
            return Report()
        log.info("draining", extra={"running": self._pool.busy})
        self._assignment.instruments.draining.labels("queue").set(1)
        self._producer.stop()
        self._loop.soon(lambda: self._life.say("draining"))
        drain = Drain(self._pool, self._executor, self._loop, self._stop, self.watchman.pool_turned)
        report = drain.run(self._patience)
        self._count(report)
        return report

    def _count(self, report: Report) -> None:
        instruments = self._assignment.instruments
        for phase, seconds in report.phases.items():
            instruments.drain_seconds.labels("queue", phase).observe(seconds)
        for result, number in report.jobs.items():
            instruments.drain_jobs_total.labels(self._assignment.name, result).inc(number)
        log.info("drained", extra={"seconds": report.phases, "jobs": report.jobs})

    def _end(self) -> None:
        """Whatever happened: no child is left, and no loop."""
        self.watchman.rest()
        self._pool.close()
        if self.watchman.fenced:
            # The loops may hang in a database that does not answer; order is what is missing.
            log.error("fenced: ending at once")
            os._exit(exit_codes.FAILED)
        self._thread.stop(UNHEARD)
        self.watchman.service.stop()
        self._assignment.instruments.draining.labels("queue").set(0)

    def _farewell(self, report: Report) -> None:
        """Tell the database how it went, within a bound: it may not answer."""

        def tell(_: object) -> None:
            try:
                if report.phases:
                    self._write_drain(report.phases, report.jobs)
            finally:
                self._life.stop()

        thread = ServiceThread("farewell", tell, lambda error: log.warning("untold: %s", error))
        thread.start()
        left = ENDING - UNHEARD - report.phases.get("flush", 0.0)
        thread.stop(max(LEAST, min(FAREWELL, left)))


def _limits(assignment: Assignment, patience: Patience) -> Limits:
    queue = assignment.queue
    return Limits(
        queue.children,
        patience.grace,
        Recycle(queue.recycle_jobs, queue.recycle_seconds, queue.recycle_mib),
        {kind.name: kind.limits for kind in assignment.kinds.values() if kind.limits is not None},
    )
