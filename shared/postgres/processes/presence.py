"""A service that keeps a process registered: one `Life` after another, whatever Postgres does.

For programs whose work does not hang on their life (listener, metrics): while the database is away
they go on answering. When a life may have been taken for dead, its row is left behind and a new
one begins.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from shared.backoff import RECONNECT, jittered
from shared.errors import WeirkeeperError
from shared.postgres.processes.life import Life
from shared.postgres.processes.registry import Registration
from shared.postgres.schema.boot import wait_for_database
from shared.services.service import ServiceThread
from shared.services.stop import StopSignal

STOP = 1.5  # seconds that a stop waits for its last word to be written
LOOK = 0.1  # seconds between looks at whether the program is ready
REST = 5.0  # seconds between looks later, when nothing is looked for that would not say so

log = logging.getLogger(__name__)


class Presence:
    """Registers the process, says when it is ready, and when it stops.

    Args:
        url: libpq URI.
        what: what the process says of itself.
        address: where it answers.
        ready: whether the program works.
        on_death: called when the loop dies.

    Attributes:
        backend_pids: server processes of the sessions that must not outlive a frozen process.
        drained: seconds by phase of the program's stop, for its drain row; asked when it stops.
    """

    def __init__(
        self,
        url: str,
        what: Registration,
        address: str,
        ready: Callable[[], bool],
        on_death: Callable[[BaseException], None],
    ) -> None:
        self._url = url
        self._what = what
        self._address = address
        self._ready = ready
        self._on_death = on_death
        self.backend_pids: Callable[[], list[int]] = list
        self.drained: Callable[[], Mapping[str, float]] = dict
        self._ending = StopSignal()  # of this service, not of the program
        self._fenced = threading.Event()
        self._draining = threading.Event()
        self._stirred = threading.Event()  # one of these three happened
        self._life: Life | None = None
        self._thread = ServiceThread("presence", self._loop, on_death, self._end)

    def start(self) -> None:
        """Begin; registering takes as long as the database is away."""
        self._thread.start()

    def started(self) -> bool:
        """Whether the loop runs."""
        return self._thread.started()

    def stop(self) -> None:
        """Write that the process ended in order."""
        self._thread.stop(STOP)

    def registered(self) -> bool:
        """Whether a process row says that this process lives, on a schema that it can use."""
        life = self._life
        return life is not None and life.epoch != 0 and not self._fenced.is_set()

    def drain(self) -> None:
        """Have the others told, soon, that this process stops; returns at once."""
        self._draining.set()
        self._stirred.set()

    def _end(self) -> None:
        self._ending.request()
        self._stirred.set()

    def _fence(self) -> None:
        self._fenced.set()
        self._stirred.set()

    def _loop(self, _stop: threading.Event) -> None:
        failures = 0
        while not self._ending.requested:
            conn = wait_for_database(self._url, self._what.slot, self._ending)
            if conn is None:
                return
            conn.close()
            try:
                self._live()
                failures = 0
            except WeirkeeperError as error:
                failures += 1
                log.warning("could not register: %s", error)
                self._ending.wait(jittered(RECONNECT.delay(failures)))

    def _live(self) -> None:
        self._fenced.clear()
        life = Life(self._url, self._what, self._fence, self._on_death)
        life.backend_pids = self.backend_pids
        try:
            life.start()
            self._life = life
            while not self._over():
                self._stirred.clear()
                self._tell(life)
                if not self._over():
                    self._stirred.wait(LOOK if life.phase == "starting" else REST)
        finally:
            self._life = None
            life.stop(self.drained() if self._ending.requested else None)

    def _tell(self, life: Life) -> None:
        if self._draining.is_set():
            phase = "draining"
        elif life.phase == "starting" and self._ready():
            phase = "ready"
        else:
            return
        if life.phase != phase:
            life.say(phase, self._address)

    def _over(self) -> bool:
        return self._ending.requested or self._fenced.is_set()
