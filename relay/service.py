"""The relay's loop: when to look, when to sleep, when to back off.

Stands after main (which builds it) and before relay.relay_pass (what one turn does). Passes follow
each other while they come back full; then it falls asleep, looks once more, and waits for a wake
or its own poll. It needs nobody for its sweep: a lost wake costs one poll, never an event. It must
never wait longer than it can notice a stop.
"""

from __future__ import annotations

import logging
import select
from collections.abc import Callable
from typing import Protocol

from relay.relay_pass import RelayPass
from shared.backoff import FAILING_PASS, jittered
from shared.clock import SYSTEM
from shared.errors import WeirkeeperError
from shared.services.stop import StopSignal

ASLEEP_POLL = 1.0  # seconds; every writer from now on notifies
DOZING_POLL = 0.1  # seconds; a writer that was silent may still be open, or a sibling sleeps

log = logging.getLogger(__name__)


class Sleep(Protocol):
    """The consumer's side of the sleep lock; shared.postgres.queues.wakes keeps the promises."""

    def fileno(self) -> int:
        """Readable when a wake has arrived."""
        ...

    def drain(self) -> object:
        """Take the wakes that arrived, whatever they say."""
        ...

    def fall_asleep(self) -> bool:
        """Try to sleep; True = every writer from now on wakes us."""
        ...

    def wake_up(self) -> None:
        """Let writers be silent again."""
        ...


class RelayService:
    """Runs until told to end, or until its connections are gone.

    Args:
        passes: what a turn does.
        wakes: open.
        stop: ends every wait.
        ended: whether to return (a stop, or a fence).
        connected: whether all sessions still stand.
    """

    def __init__(
        self,
        passes: RelayPass,
        wakes: Sleep,
        stop: StopSignal,
        ended: Callable[[], bool],
        connected: Callable[[], bool],
    ) -> None:
        self._passes = passes
        self._wakes = wakes
        self._stop = stop
        self._ended = ended
        self._connected = connected

    def run(self) -> None:
        """Relay.

        Raises:
            WeirkeeperError: a session ended; connect again.
        """
        failures = 0
        while not self._ended():
            try:
                self._work()
                self._rest()
                failures = 0
            except WeirkeeperError as error:
                if not self._connected():
                    raise
                failures += 1
                self._back_off(error, failures)

    def _work(self) -> None:
        """Pass after pass until one is not full."""
        while not self._ended() and self._passes.turn().full:
            pass

    def _rest(self) -> None:
        """Sleep until there is more to do than the odd event."""
        retry_at = SYSTEM.monotonic() + ASLEEP_POLL
        asleep = self._wakes.fall_asleep()
        while not self._ended():
            if self._passes.turn().rows > 1:
                break  # others may be writing too: let them be silent meanwhile
            self._wait(ASLEEP_POLL if asleep else DOZING_POLL)
            if not asleep and SYSTEM.monotonic() >= retry_at:
                break
        self._wakes.wake_up()

    def _wait(self, seconds: float) -> None:
        """Wait for a notice or a stop."""
        select.select([self._wakes.fileno(), self._stop.fileno()], [], [], seconds)
        self._wakes.drain()

    def _back_off(self, error: WeirkeeperError, failures: int) -> None:
        """Wait 2 s doubling to 60 s; asleep or not, the wake cannot shorten it."""
        seconds = jittered(FAILING_PASS.delay(failures))
        log.error("a relay pass failed, the next one is in %.1f s: %s", seconds, error)
        self._wakes.wake_up()
        self._stop.wait(seconds)
