"""The metrics program: one Prometheus endpoint for the deployment. `python -P -m metrics`.

Builds the adapters; stands before metrics.server (routes), metrics.collector (gauges) and
metrics.files (slots). Two connections: gauges, beat. Stops last, so that a drain is still scraped.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from contextlib import closing

from metrics.collector import EVERY, Collector
from metrics.programs import Programs
from metrics.server import Scrape, app
from shared.app import load_app
from shared.clock import SYSTEM
from shared.config.budget import METRICS
from shared.config.settings import Settings
from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Connection
from shared.postgres.inspection.gauges import areas, open_gauges
from shared.postgres.processes.presence import Presence
from shared.postgres.processes.registry import Registration
from shared.postgres.schema.migrator import migrations
from shared.release import version
from shared.services import exit_codes, web
from shared.services.group import ServiceGroup
from shared.services.program import run
from shared.services.stop import StopSignal
from shared.services.supervision import Supervision
from shared.stats import Reading
from shared.telemetry.instruments import Instruments, open_instruments
from shared.telemetry.slots import metrics_folder

STALE = 3 * EVERY  # seconds without a number from the database: not ready

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the metrics program to its end; return its exit code."""
    parser = argparse.ArgumentParser("metrics", description="Serves /metrics for Prometheus.")
    parser.add_argument("--slot", default="metrics", help="name of this process")
    return run(parser, argv, _body, _check)


def _check(settings: Settings, _args: argparse.Namespace) -> dict[str, object]:
    settings.database()
    load_app(settings.app)
    return {"bind": f"{settings.host}:{settings.metrics_port}"}


def _body(settings: Settings, args: argparse.Namespace, stop: StopSignal) -> int:
    with (
        closing(open_instruments(settings.home, args.slot)) as instruments,
        closing(web.bind(settings.host, settings.metrics_port, "WEIRKEEPER_METRICS_PORT")) as bound,
    ):
        database = _Database(settings, args.slot, instruments)
        collector = Collector(database, instruments, stop.fail)
        what = Registration(
            "metrics", args.slot, None, version("weirkeeper"), METRICS, 0, (), settings.generation
        )
        presence = Presence(
            settings.database(),
            what,
            web.address(bound),
            lambda: collector.age() < STALE,
            stop.fail,
        )
        presence.drained = lambda: _drained(stop, instruments)
        programs = Programs(Supervision(settings.home).programs, stop.fail)
        services = ServiceGroup([collector, programs, presence])

        def live() -> str:
            return "" if services.started() else "a loop has ended"

        def ready() -> str:
            if stop.requested:
                return "draining"
            if collector.age() >= STALE:
                return "the database does not answer"
            return "" if presence.registered() else "not registered yet"

        build = (version("weirkeeper"), str(migrations()[-1].version))
        scrape = Scrape(metrics_folder(settings.home), (collector, programs), build)
        services.start()
        try:
            log.info("answers on http://%s/metrics", web.address(bound))
            web.serve(
                app(scrape, live, ready), bound, stop, turned=lambda: instruments.turned("http")
            )
        finally:
            services.stop()
    return exit_codes.OK


def _drained(stop: StopSignal, instruments: Instruments) -> dict[str, float]:
    """How long the last answers held the stop up, by phase."""
    if stop.requested_at is None:
        return {}
    seconds = round(SYSTEM.monotonic() - stop.requested_at, 3)
    instruments.drain_seconds.labels("metrics", "answers").observe(seconds)
    return {"answers": seconds}


class _Database:
    """The connection that gauges are read through, opened when needed and again when lost."""

    def __init__(self, settings: Settings, slot: str, instruments: Instruments) -> None:
        self._url = settings.database()
        self._slot = slot
        self._instruments = instruments
        self._areas = areas(sorted(load_app(settings.app).all_kinds))
        self._conn: Connection | None = None

    def areas(self) -> list[str]:
        """Names of what can be read."""
        return list(self._areas)

    def read(self, area: str) -> list[Reading]:
        """The numbers of one area; see metrics.collector.Source."""
        try:
            if self._conn is None or self._conn.closed:
                self._conn = open_gauges(self._url, self._slot)
                self._instruments.db_connects_total.inc()
            return self._areas[area](self._conn)
        except WeirkeeperError as error:
            if error.transient:
                self.close()
            raise

    def close(self) -> None:
        """End the connection; harmless when repeated."""
        if self._conn is not None:
            self._conn.close()
        self._conn = None
