"""Reading gauges from Postgres by a timer, into a snapshot whose age is told.

Before it: shared.postgres.inspection.gauges. After it: the server renders the snapshot at each
scrape, so that no scrape waits for a database. An area that fails keeps its last numbers and its
age grows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from shared.backoff import RECONNECT, jittered
from shared.clock import SYSTEM, Clock
from shared.errors import WeirkeeperError
from shared.services.service import ServiceThread
from shared.stats import Reading
from shared.telemetry.instruments import Instruments

EVERY = 5.0  # seconds between reads
STOP = 1.0  # seconds that a stop waits for a read; a daemon thread does not keep the process

log = logging.getLogger(__name__)


class Source(Protocol):
    """Reads areas through a connection that it keeps."""

    def areas(self) -> list[str]:
        """Their names."""
        ...

    def read(self, area: str) -> list[Reading]:
        """The numbers of one area.

        Raises:
            WeirkeeperError: not now.
        """
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Collector:
    """A service that keeps the newest numbers of every area.

    Args:
        source: reads them.
        instruments: counts errors and turns.
        on_death: called when the loop dies.
        clock: tells when.
    """

    def __init__(
        self,
        source: Source,
        instruments: Instruments,
        on_death: Callable[[BaseException], None],
        clock: Clock = SYSTEM,
    ) -> None:
        self._source = source
        self._thread = ServiceThread("gauges", self._loop, on_death)
        self._instruments = instruments
        self._clock = clock
        # Replaced whole, never changed in place: the server reads it from another thread.
        self._snapshot: Mapping[str, tuple[Reading, ...]] = {}
        self._read_at: float | None = None

    def start(self) -> None:
        """Begin to read, at once and then every 5 s."""
        self._thread.start()

    def started(self) -> bool:
        """Whether the loop runs."""
        return self._thread.started()

    def stop(self) -> None:
        """End the loop and its connection."""
        self._thread.stop(STOP)

    def _loop(self, stop: threading.Event) -> None:
        failures = 0
        try:
            while not stop.is_set():
                failures = 0 if self.collect() else failures + 1
                soon = jittered(RECONNECT.delay(failures))
                stop.wait(min(EVERY, soon) if failures else EVERY)
        finally:
            self._source.close()

    def collect(self) -> bool:
        """Read every area once; errors are kept to their area.

        Returns:
            Whether there is a database with our schema.
        """
        self._instruments.turned("collector")
        for area in self._source.areas():
            begun = self._clock.monotonic()
            try:
                readings = self._source.read(area)
            except WeirkeeperError as error:
                self._instruments.db_failed(error)
                log.warning("gauges of %s could not be read: %s", area, error)
                if error.transient or not self._snapshot:
                    return False  # the database is away: the other areas would wait for it, too
                continue
            self._keep(area, readings, self._clock.monotonic() - begun)
        return True

    def _keep(self, area: str, readings: list[Reading], seconds: float) -> None:
        kept = (
            *readings,
            Reading("collector_read_seconds", (area,), seconds),
            Reading(
                "collector_last_success_timestamp_seconds",
                (area,),
                self._clock.wall().timestamp(),
            ),
        )
        self._snapshot = {**self._snapshot, area: kept}
        self._read_at = self._clock.monotonic()

    def readings(self) -> list[Reading]:
        """The newest numbers of every area."""
        return [reading for area in self._snapshot.values() for reading in area]

    def age(self) -> float:
        """Seconds since anything was read; infinite when nothing ever was."""
        return float("inf") if self._read_at is None else self._clock.monotonic() - self._read_at
