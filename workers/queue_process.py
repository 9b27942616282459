"""One queue process, of one queue or several: its loops built, started, run, drained and ended.

Before this: main, which built the adapters. The pool's loop runs here, in the main thread; the
database's loop, the watchman and the beat have threads of their own. Must never speak to the
database from the main thread while children run.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from shared.clock import SYSTEM
from shared.jobs.work import Work
from shared.services import exit_codes
from shared.services.service import ServiceThread
from shared.services.stop import StopSignal
from workers.assignment import Assignment
from workers.drain import ENDING, Drain, Patience, Report
from workers.one_queue import OneQueue
from workers.pool.forkserver import ForkServer
from workers.pool.several import Pools
from workers.watchman import Watchman

TURN = 1.0  # seconds that the pool's loop waits at most when nothing is due
# Flush, loop and farewell share ENDING: a Postgres that stands still takes each to its bound, and
# the whole must stay below supervisord's stopwaitsecs (drain 20 + grace 2 + 1 + 4 of 30 s).
UNHEARD = 0.5  # seconds that the database's loop may take to end
FAREWELL = 2.0  # seconds that the last words to the database may take
LEAST = 0.5  # seconds for them however long the flush took

log = logging.getLogger(__name__)


class Life(Protocol):
    """How the process is seen by others; shared.postgres.processes.life keeps the promises."""

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
        open_work: opens a queue's sessions for claims and wakes.
        life: registered and beating.
        write_drain: keeps a report: (seconds by phase, jobs by result).
        stop: its program's.
    """

    server: ForkServer
    open_work: Callable[[str], Work]
    life: Life
    write_drain: Callable[[Mapping[str, float], Mapping[str, int]], None]
    stop: StopSignal


class QueueProcess:
    """Runs one queue, or several that each keep to themselves.

    Args:
        assignments: one for each queue.
        outside: what main gives.
        patience: of a stop.
    """

    def __init__(
        self, assignments: Sequence[Assignment], outside: Outside, patience: Patience
    ) -> None:
        self._instruments = assignments[0].instruments
        self._patience = patience
        self._stop = outside.stop
        self._life = outside.life
        self._write_drain = outside.write_drain
        names = [assignment.name for assignment in assignments]
        self.watchman = Watchman(outside.stop, outside.server.kill, outside.life.beat_age, names)
        self._queues = [
            OneQueue(
                assignment,
                outside.server,
                partial(outside.open_work, assignment.name),
                partial(self.watchman.database_turned, assignment.name),
                self._stop.fail,
                patience.grace,
            )
            for assignment in assignments
        ]
        self._pools = Pools([queue.pool for queue in self._queues])
        self._unready = set(names)
        self._resting = False

    def run(self) -> int:
        """Run until a stop was asked for, and then in order to the end.

        Returns:
            An exit code.

        Raises:
            ConfigurationError: the children refuse to run at all.
            PoolBroken: none can be started.
        """
        self.watchman.service.start()
        self._pools.watch(self._stop.fileno())
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
        while not self._stop.requested and not all(queue.filled for queue in self._queues):
            self._turn(TURN)
        self.watchman.booted()

    def _work(self) -> None:
        if self._stop.requested:
            return
        for queue in self._queues:
            queue.thread.start()
            queue.loop.soon(partial(self._ready, queue.assignment))
        while not self._stop.requested:
            self._turn(TURN)
            if self._life.resting != self._resting:
                self._rest()

    def _ready(self, assignment: Assignment) -> None:
        """A queue's loop turns; when all do, the others are told. In that loop's thread."""
        self._unready.discard(assignment.name)
        if not self._unready:
            self._life.say("ready")
        log.info("ready", extra={"queue": assignment.name, "children": assignment.queue.children})

    def _rest(self) -> None:
        """Start nothing more while a newer generation works; what runs goes on. Or work again."""
        self._resting = self._life.resting
        resting, phase = self._resting, "draining" if self._resting else "ready"
        log.info("resting: another generation works" if resting else "working again")
        self._instruments.draining.labels("queue").set(int(resting))
        for queue in self._queues:
            queue.loop.soon(partial(queue.rest, resting=resting))
        self._queues[0].loop.soon(lambda: self._life.say(phase))

    def _turn(self, seconds: float) -> None:
        self._pools.turn(seconds)
        for queue in self._queues:
            queue.executor.tend()
        self.watchman.pool_turned()

    def _drain(self) -> Report:
        self._pools.unwatch(self._stop.fileno())
        if self.watchman.fenced:
            return Report()
        log.info("draining", extra={"running": self._pools.busy})
        self._instruments.draining.labels("queue").set(1)
        for queue in self._queues:
            queue.producer.stop()
        self._queues[0].loop.soon(lambda: self._life.say("draining"))
        drain = Drain(self._pools, self._queues, self._stop, self.watchman.pool_turned)
        report = drain.run(self._patience)
        self._count(report)
        return report

    def _count(self, report: Report) -> None:
        for phase, seconds in report.phases.items():
            self._instruments.drain_seconds.labels("queue", phase).observe(seconds)
        for (queue, result), number in report.by_queue.items():
            self._instruments.drain_jobs_total.labels(queue, result).inc(number)
        log.info("drained", extra={"seconds": report.phases, "jobs": report.jobs})

    def _end(self) -> None:
        """Whatever happened: no child is left, and no loop."""
        self.watchman.rest()
        self._pools.close()
        if self.watchman.fenced:
            # The loops may hang in a database that does not answer; order is what is missing.
            log.error("fenced: ending at once")
            os._exit(exit_codes.FAILED)
        deadline = SYSTEM.monotonic() + UNHEARD
        for queue in self._queues:
            queue.thread.stop(max(0.0, deadline - SYSTEM.monotonic()))
        self.watchman.service.stop()
        self._instruments.draining.labels("queue").set(0)

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
