"""Watches that the loops turn and the beat is heard: what hangs takes its process with it.

The supervisor starts it again. A thread of its own. Before this: the loops tell it each turn. A
pool's loop that hangs while it starts a child is freed by killing the fork server; a loop that
stays stuck ends the process, at once and not in order, because order is what is missing.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable

from shared.clock import SYSTEM
from shared.services import exit_codes
from shared.services.service import ServiceThread, ticker
from shared.services.stop import StopSignal

TICK = 0.5  # seconds
STOPPING = 1.0  # seconds that the pool's loop may hang once a stop was asked for
BOOTING = 60.0  # seconds that the application's imports may take
HUNG = 15.0  # seconds that the pool's loop may hang otherwise
STUCK = 90.0  # seconds that the database's loop may hang: statements end after 30

FENCE = 10.0  # seconds since the last acknowledged beat was sent; the lease is 15

log = logging.getLogger(__name__)


class Fenced(RuntimeError):
    """This process may be taken for dead by others."""


class Watchman:
    """Watches one queue process.

    Attributes:
        fenced: this process may be taken for dead; its children were killed.

    Args:
        stop: its program's.
        free: kills all children and ends whatever the pool's loop waits for, from any thread.
        beat_age: seconds since the last acknowledged beat was sent.
        queues: each has a loop with the database.
    """

    def __init__(
        self,
        stop: StopSignal,
        free: Callable[[], None],
        beat_age: Callable[[], float],
        queues: Iterable[str],
    ) -> None:
        self.fenced = False
        self._stop = stop
        self._free = free
        self._beat_age = beat_age
        self._allowed = BOOTING
        self._pool = SYSTEM.monotonic()
        self._databases = dict.fromkeys(queues, self._pool)
        self._freed = False
        self._watching = True
        self.service: ServiceThread = ticker("watchman", TICK, self._look, stop.fail)

    def pool_turned(self) -> None:
        """The pool's loop turned."""
        self._pool = SYSTEM.monotonic()
        self._freed = False

    def database_turned(self, queue: str) -> None:
        """A queue's loop with the database turned."""
        self._databases[queue] = SYSTEM.monotonic()

    def booted(self) -> None:
        """The children are there: from now on a turn is short."""
        self._allowed = HUNG

    def rest(self) -> None:
        """The process ends in order: nothing turns any more, and that is right."""
        self._watching = False

    def fence(self) -> None:
        """Others may run our jobs by now: end ours. From any thread, harmless when repeated."""
        if not self.fenced:
            self.fenced = True
            self._free()
            self._stop.fail(Fenced("no beat was acknowledged for too long"))

    def _look(self) -> None:
        if not self._watching:
            return
        if self._beat_age() > FENCE:  # a beat that hangs cannot say so itself
            self.fence()
        now = SYSTEM.monotonic()
        hung = now - self._pool
        allowed = STOPPING if self._stop.requested else self._allowed
        if hung > allowed and not self._freed:
            self._freed = True
            log.error("the pool's loop has hung for %.1f s: killing the fork server", hung)
            self._free()
        if hung > self._allowed + HUNG or now - min(self._databases.values()) > STUCK:
            log.critical("a loop is stuck: ending the process")
            self._free()
            os._exit(exit_codes.FAILED)
