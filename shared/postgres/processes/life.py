"""A process's life as the others see it: its row, its beat, its phase; and its self-fence.

Every program owns one `Life`. The beat has a connection of its own, so that a claim or a pass that
hangs never makes its process look dead. When no beat was acknowledged for 10 s, or the row says
that this life was declared dead, `on_fence` is called: others may already run its jobs.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from shared.clock import SYSTEM
from shared.errors import DatabaseUnavailable, WeirkeeperError
from shared.postgres.driver.connect import Connection, connect
from shared.postgres.processes.drains import drained
from shared.postgres.processes.registry import (
    BEAT,
    SELF_FENCE,
    Heard,
    Registration,
    beat,
    register,
    stopped,
)
from shared.services.process import identity
from shared.services.service import ticker

FAREWELL = 2.0  # seconds that a stop waits for a beat under way

log = logging.getLogger(__name__)


class Life:
    """Registers the process and beats for it.

    Attributes:
        epoch: of this life; 0 before it is registered.
        resting: others ask it to start nothing more (`weirkeeper drain --generation old`).
        backend_pids: server processes of the sessions that must not outlive a frozen process.

    Args:
        url: libpq URI.
        what: what the process says of itself.
        on_fence: called once, from the beat's thread, when this life may be taken for dead.
        on_death: called when the beat's loop itself dies.
    """

    def __init__(
        self,
        url: str,
        what: Registration,
        on_fence: Callable[[], None],
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._url = url
        self._what = what
        self._on_fence = on_fence
        self._lock = threading.Lock()  # the beat's connection: used by beat, say and stop
        self._conn: Connection | None = None
        self._phase = "starting"
        self._address: str | None = None
        self._fenced = False
        self._acknowledged = SYSTEM.monotonic()
        self._ticker = ticker("beat", BEAT, self._tick, on_death)
        self.epoch = 0
        self.resting = False
        self.backend_pids: Callable[[], list[int]] = list

    def start(self) -> None:
        """Register (synchronously committed) and begin to beat.

        Raises:
            WeirkeeperError: the database would not have it.
        """
        self._conn = connect(self._url, f"{self._what.slot} beat")
        self.epoch = register(self._conn, identity(), self._what)
        self._acknowledged = SYSTEM.monotonic()
        self._ticker.start()

    def started(self) -> bool:
        """Whether it beats."""
        return self._ticker.started()

    def say(self, phase: str, address: str | None = None) -> None:
        """Change the phase (starting, ready, draining) and tell the others at once."""
        self._phase = phase
        self._address = address or self._address
        self._tick()

    @property
    def phase(self) -> str:
        """The phase told last."""
        return self._phase

    def beat_age(self) -> float:
        """Seconds since the last acknowledged beat was sent."""
        return SYSTEM.monotonic() - self._acknowledged

    def stop(self, phases: Mapping[str, float] | None = None) -> None:
        """Stop beating and say that the process ended in order.

        Args:
            phases: seconds that each phase of the stop took, for its drain row; None = no row, or
                it is written already.
        """
        self._ticker.stop(FAREWELL)
        # A beat that hangs in a frozen database holds the lock, and must not hold the stop.
        if not self._lock.acquire(timeout=FAREWELL):
            log.warning("could not write the end of this process: the last beat hangs")
            return
        try:
            self._say_stopped(phases)
        finally:
            self._lock.release()

    def _say_stopped(self, phases: Mapping[str, float] | None) -> None:
        if self._conn is None:
            return
        if self.epoch:
            try:
                if phases is not None:
                    drained(self._conn, self.epoch, phases, {})
                stopped(self._conn, self.epoch)
            except WeirkeeperError as error:
                log.warning("could not write the end of this process: %s", error)
        self._conn.close()
        self._conn = None

    def _tick(self) -> None:
        sent = SYSTEM.monotonic()
        # Asked before the beat: one that was frozen may beat again before anybody else asks.
        alive = sent - self._acknowledged < SELF_FENCE
        try:
            with self._lock:
                heard = self._beat()
        except WeirkeeperError as error:
            log.warning("beat failed: %s", error)
        else:
            self.resting = heard.rest
            if heard.ended:
                log.warning("ended %d sessions of processes that are silent", heard.ended)
            alive = alive and heard.alive
            if alive:
                self._acknowledged = sent
        if not alive and not self._fenced:
            self._fenced = True
            log.error("this process may be taken for dead: fencing itself")
            self._on_fence()

    def _beat(self) -> Heard:
        """Beat; once more through a new session when the old one was gone.

        The database may have been back for long, and the next turn may find it away again: a few
        restarts in a row would make this life look dead.
        """
        conn = self._conn
        if conn is not None and not conn.closed:
            try:
                return self._beat_through(conn)
            except DatabaseUnavailable:
                if not conn.closed:
                    raise
        self._conn = connect(self._url, f"{self._what.slot} beat")
        return self._beat_through(self._conn)

    def _beat_through(self, conn: Connection) -> Heard:
        return beat(conn, self.epoch, self._phase, self._address, self.backend_pids())
