"""The relay program: builds the adapters and keeps them connected. `python -P -m relay`.

Stands before relay.service (the loop). A life is one process row: it ends with a stop, or when its
beat could not be acknowledged for so long that others may take it for dead; then a new one begins.
Within a life the sessions are opened again as often as it takes: a database that is away is waited
for, never a reason to exit.
"""

from __future__ import annotations

import argparse
import logging
import threading
from collections.abc import Sequence
from contextlib import closing

from relay.relay_pass import RelayPass
from relay.service import RelayService
from relay.tally import Tally
from shared.app import App, load_app
from shared.backoff import RECONNECT, jittered
from shared.clock import SYSTEM
from shared.config.budget import RELAY
from shared.config.settings import Settings
from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Connection
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.processes.drains import drained
from shared.postgres.processes.life import Life
from shared.postgres.processes.registry import Registration
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.wakes import RELAY_LOCK, Wakes, relay_channel
from shared.postgres.schema.boot import wait_for_database
from shared.release import version
from shared.services import exit_codes
from shared.services.program import run
from shared.services.stop import StopSignal
from shared.telemetry.instruments import Instruments, open_instruments

RESTING = 0.5  # seconds between looks at whether it is still asked to rest

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the relay to its end; return its exit code."""
    parser = argparse.ArgumentParser("relay", description="Turns recorded events into jobs.")
    parser.add_argument("--slot", default="relay", help="name of this process; default: relay")
    return run(parser, argv, _body, _check)


def _check(settings: Settings, _args: argparse.Namespace) -> dict[str, object]:
    """Refuse what cannot work; tell the subscriptions by event type."""
    settings.database()
    routes: dict[str, list[str]] = {}
    for event_type, subscription in load_app(settings.app).routes:
        routes.setdefault(event_type, []).append(subscription.name)
    return {"routes": routes}


def _body(settings: Settings, args: argparse.Namespace, stop: StopSignal) -> int:
    instruments = open_instruments(settings.home, args.slot)
    with closing(instruments):
        program = _Program(settings, args.slot, stop, instruments)
        while not stop.requested:
            program.live()
    return exit_codes.OK


class _Program:
    """The relay's lives, one after another."""

    def __init__(
        self, settings: Settings, slot: str, stop: StopSignal, instruments: Instruments
    ) -> None:
        self._url = settings.database()
        self._app: App = load_app(settings.app)
        self._slot = slot
        self._generation = settings.generation
        self._stop = stop
        self._instruments = instruments
        self._wakes = Wakes(self._url, slot, RELAY_LOCK, relay_channel())
        self._fenced = threading.Event()
        self._failures = 0  # of connecting, in a row
        # Server processes to end when this process is frozen: a frozen sleeper is expensive. Read
        # by the beat's thread, so never from the connection itself.
        self._pids: list[int] = []

    def live(self) -> None:
        """One life: register, relay until a stop or a fence, write how it ended."""
        conn = wait_for_database(self._url, self._slot, self._stop, turned=self._turned)
        if conn is None:
            return
        conn.close()
        self._fenced.clear()
        life = Life(self._url, self._registration(), self._fenced.set, self._stop.fail)
        life.backend_pids = lambda: self._pids
        try:
            life.start()
        except WeirkeeperError as error:
            life.stop()
            self._pause(error)
            return
        try:
            while not self._ended():
                if life.resting:
                    self._rest(life)
                else:
                    self._connected(life)
        finally:
            life.stop()

    def _registration(self) -> Registration:
        return Registration(
            "relay", self._slot, None, version("weirkeeper"), RELAY, 0, (), self._generation
        )

    def _turned(self) -> None:
        self._instruments.turned("relay")

    def _ended(self) -> bool:
        return self._stop.requested or self._fenced.is_set()

    def _rest(self, life: Life) -> None:
        """Relay nothing while others ask for it: a newer generation works."""
        life.say("draining")
        log.info("resting: another generation works")
        while life.resting and not self._ended():
            self._turned()
            self._stop.wait(RESTING)

    def _connected(self, life: Life) -> None:
        """Open the sessions and relay until one of them ends, or all is to end."""
        conn = wait_for_database(self._url, f"{self._slot} passes", self._stop, turned=self._turned)
        if conn is None:
            return
        with closing(conn), closing(self._wakes):
            try:
                self._relay(conn, life)
            except WeirkeeperError as error:
                self._pause(error)
            finally:
                self._pids = []

    def _relay(self, conn: Connection, life: Life) -> None:
        declare(conn, self._app)
        self._wakes.open()
        self._pids = [self._wakes.backend_pid]
        self._instruments.db_connects_total.labels().inc(2)
        outbox = PostgresOutbox(conn)
        passes = RelayPass(outbox, Tally(self._instruments))
        life.say("ready")
        log.info("ready")
        self._failures = 0

        def ended() -> bool:
            return self._ended() or life.resting

        def connected() -> bool:
            return outbox.connected and not self._wakes.connection.closed

        RelayService(passes, self._wakes, self._stop, ended, connected).run()
        if self._stop.requested:
            self._drained(conn, life)

    def _drained(self, conn: Connection, life: Life) -> None:
        """Tell how the stop went; the pass that was under way is all that there is to finish."""
        self._instruments.draining.labels("relay").set(1)
        life.say("draining")
        asked = self._stop.requested_at
        seconds = 0.0 if asked is None else SYSTEM.monotonic() - asked
        self._instruments.drain_seconds.labels("relay", "pass").observe(seconds)
        drained(conn, life.epoch, {"pass": seconds}, {})

    def _pause(self, error: WeirkeeperError) -> None:
        """Wait before connecting again: 0.1 s doubling to 5 s."""
        self._failures += 1
        log.warning("connecting again: %s", error)
        self._stop.wait(jittered(RECONNECT.delay(self._failures)))
