"""The listener program: builds the adapters, answers until told to stop. `python -P -m listener`.

Stands before listener.server (routes) and listener.waiting (waits). Three connections: LISTEN,
reads, beat. While Postgres is away it stays, not ready; waits that are open then go on to their
bound.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from contextlib import closing

from listener.server import Routes
from listener.waiting import Waiting
from listener.watcher import ListenWatcher
from shared.clock import SYSTEM
from shared.config.budget import LISTENER
from shared.config.settings import Settings
from shared.notices.reads import Reads
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres.application.answers import Answers
from shared.postgres.application.ear import PostgresEar
from shared.postgres.processes.presence import Presence
from shared.postgres.processes.registry import Registration
from shared.release import version
from shared.services import exit_codes, web
from shared.services.group import ServiceGroup
from shared.services.program import run
from shared.services.stop import StopSignal
from shared.telemetry.instruments import Instruments, open_instruments

STUCK = 10.0  # seconds without a turn of a loop: a read that Postgres does not answer

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the listener to its end; return its exit code."""
    parser = argparse.ArgumentParser("listener", description="Lets callers wait for a result.")
    parser.add_argument("--slot", default="listener", help="name of this process")
    return run(parser, argv, _body, _check)


def _check(settings: Settings, _args: argparse.Namespace) -> dict[str, object]:
    settings.database()
    return {"bind": f"{settings.host}:{settings.listener_port}"}


def _body(settings: Settings, args: argparse.Namespace, stop: StopSignal) -> int:
    with (
        closing(open_instruments(settings.home, args.slot)) as instruments,
        closing(
            web.bind(settings.host, settings.listener_port, "WEIRKEEPER_LISTENER_PORT")
        ) as bound,
    ):
        program = _Program(settings, args.slot, stop, instruments, web.address(bound))
        program.services.start()
        try:
            log.info("answers on http://%s", web.address(bound))
            app = program.routes.app()
            web.serve(app, bound, stop, program.drain, lambda: instruments.turned("http"))
            program.drained()
        finally:
            program.services.stop()
    return exit_codes.OK


class _Program:
    """The listener's parts, wired."""

    def __init__(
        self,
        settings: Settings,
        slot: str,
        stop: StopSignal,
        instruments: Instruments,
        address: str,
    ) -> None:
        url = settings.database()
        self._instruments = instruments
        self._stop = stop
        ear = PostgresEar(url, slot)
        waiters = Waiters()
        self._source = NoticeSource(
            ear, waiters, stop.fail, always=True, watcher=ListenWatcher(instruments)
        )
        answers = Answers(url, slot, instruments.db_connects_total.inc)
        reads = Reads(
            answers, stop.fail, lambda: instruments.turned("reads"), instruments.db_failed
        )
        what = Registration(
            "listener", slot, None, version("weirkeeper"), LISTENER, 0, (), settings.generation
        )
        self._presence = Presence(url, what, address, lambda: self._source.connected, stop.fail)
        self._presence.backend_pids = ear.backend_pids
        self._presence.drained = lambda: self._phases
        self._phases: dict[str, float] = {}
        self._waiting = Waiting(waiters, reads)
        self.services = ServiceGroup([reads, self._source, self._presence])
        self.routes = Routes(self._waiting, self._live, self._ready, instruments)

    def drain(self) -> None:
        """Answer every open wait now, so that the stop takes no longer than they do."""
        self._instruments.draining.labels("listener").set(1)
        self._waiting.stop()
        self._presence.drain()

    def drained(self) -> None:
        """Tell how long the open waits held the stop up: the metrics now, its row with the stop."""
        asked = self._stop.requested_at
        if asked is not None:
            seconds = SYSTEM.monotonic() - asked
            self._phases["waits"] = round(seconds, 3)
            self._instruments.drain_seconds.labels("listener", "waits").observe(seconds)

    def _live(self) -> str:
        return "" if self.services.started() else "a loop has ended"

    def _ready(self) -> str:
        if self._stop.requested:
            return "draining"
        if not self._source.connected:
            return "no LISTEN connection"
        stuck = self._instruments.stuck(STUCK)
        if stuck:
            return f"loops that do not turn: {', '.join(stuck)}"
        return "" if self._presence.registered() else "not registered yet"
