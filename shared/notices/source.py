"""The one LISTEN connection of a process: keeps it open, hears notices, wakes waiters.

Stands between an ear (shared.postgres.application.ear) and the waiters. A listener keeps the
connection always; an application's process only once somebody wants it, while somebody waits, and a
little longer. After each connect all waiters look again: what was said in the gap is lost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from shared.backoff import RECONNECT, jittered
from shared.clock import SYSTEM
from shared.errors import WeirkeeperError
from shared.notices.waiters import Waiters
from shared.services.service import ServiceThread

TURN = 0.5  # seconds that one look at the connection lasts at most
LINGER = 30.0  # seconds that an application's connection outlives its last waiter
STOP = 1.0  # seconds that a stop waits for a connect; a daemon thread does not keep the process
SLOWEST = 1.0  # seconds between tries to connect; waiters are people

log = logging.getLogger(__name__)


class Ear(Protocol):
    """A connection that hears all channels."""

    def open(self) -> None:
        """Connect and LISTEN.

        Raises:
            WeirkeeperError: not now.
        """
        ...

    def notices(self, seconds: float) -> list[tuple[str, str]]:
        """(channel, payload) of what arrives; returns at once with the first, or after `seconds`.

        Raises:
            WeirkeeperError: the connection has ended.
        """
        ...

    def interrupt(self) -> None:
        """End a `notices` that waits; called from another thread."""
        ...

    def close(self) -> None:
        """End it; harmless when repeated."""
        ...


class Watcher:
    """What a program may want to know of its source; by default nothing."""

    def turned(self) -> None:
        """The loop turns."""

    def connected(self, *, again: bool) -> None:
        """LISTEN stands; `again`: not for the first time."""

    def disconnected(self) -> None:
        """LISTEN is lost, or was given up because nobody waits."""

    def heard(self, channel: str) -> None:
        """A notice arrived."""


class NoticeSource:
    """A service: the loop around one ear.

    Args:
        ear: hears the channels.
        waiters: are woken.
        on_death: called when the loop dies.
        always: keep the connection while nobody waits, too.
        watcher: is told.
    """

    def __init__(
        self,
        ear: Ear,
        waiters: Waiters,
        on_death: Callable[[BaseException], None],
        *,
        always: bool,
        watcher: Watcher | None = None,
    ) -> None:
        self._ear = ear
        self._waiters = waiters
        self._always = always
        self._watcher = watcher or Watcher()
        self._failures = 0
        self._connects = 0
        self._wanted_until = 0.0
        self._called = threading.Event()
        self.connected = False
        self._thread = ServiceThread("notices", self._loop, on_death, self._stir)

    def start(self) -> None:
        """Begin; the connection comes when it comes."""
        self._thread.start()

    def want(self) -> None:
        """Have it connected for LINGER seconds, and while somebody waits; from any thread."""
        self._wanted_until = SYSTEM.monotonic() + LINGER
        self._called.set()
        self.start()

    def started(self) -> bool:
        """Whether the loop runs (not whether it is connected)."""
        return self._thread.started()

    def stop(self) -> None:
        """End the loop and its connection."""
        self._thread.stop(STOP)

    def _stir(self) -> None:
        self._called.set()
        self._ear.interrupt()

    def _loop(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self._watcher.turned()
                if self._wanted():
                    self._turn(stop)
                else:
                    self._close()
                    self._called.wait()
                    self._called.clear()  # then look whether it is wanted: no call is lost
        finally:
            self._close()

    def _wanted(self) -> bool:
        now = SYSTEM.monotonic()
        if self._waiters.any():
            self._wanted_until = now + LINGER
        return self._always or now < self._wanted_until

    def _turn(self, stop: threading.Event) -> None:
        """Connect if need be, then hear for a while; an error costs the connection only."""
        try:
            if not self.connected:
                self._open()
            for channel, payload in self._ear.notices(TURN):
                self._watcher.heard(channel)
                self._waiters.heard(channel, payload)
        except WeirkeeperError as error:
            self._close()
            self._failures += 1
            log.warning("notices: connecting again: %s", error)
            stop.wait(min(SLOWEST, jittered(RECONNECT.delay(self._failures))))

    def _open(self) -> None:
        self._ear.open()
        self.connected = True
        self._failures = 0
        self._watcher.connected(again=self._connects > 0)
        self._connects += 1
        self._waiters.missed()

    def _close(self) -> None:
        self._ear.close()
        if self.connected:
            self.connected = False
            self._watcher.disconnected()
