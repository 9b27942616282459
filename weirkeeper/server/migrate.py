"""`python -P -m weirkeeper.server.migrate [--wait]`: schema and declarations, then it is done.

The one-shot program `migrate` of supervisord.conf, and `weirkeeper migrate`. The other programs
run no DDL; they wait until this has run.
"""

from __future__ import annotations

import argparse
import sys

from shared.app import App, load_app
from shared.backoff import RECONNECT, jittered
from shared.config.settings import Settings
from shared.config.urls import masked
from shared.errors import ConfigurationError, DatabaseRefused, WeirkeeperError
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from shared.postgres.schema.migrator import migrate
from shared.services import exit_codes
from shared.services.stop import StopSignal, end_at_once

MAY_NOT = "42501"  # SQLSTATE insufficient_privilege


def main(argv: list[str] | None = None) -> int:
    """Migrate and declare.

    Returns:
        0 done, 1 the database would not have it, 78 a mistake in the settings.
    """
    parser = argparse.ArgumentParser(
        "weirkeeper migrate", description="Bring the schema up to date."
    )
    parser.add_argument("--wait", action="store_true", help="wait for a database that is away")
    args = parser.parse_args(argv)
    end_at_once()
    try:
        settings = Settings.load()
        app = load_app(settings.app)
        stop = StopSignal()
        stop.install()
        return _until_done(settings, app, stop, wait=args.wait)
    except ConfigurationError as error:
        sys.stderr.write(f"weirkeeper migrate: {error}\n")
        return exit_codes.CONFIGURATION
    except WeirkeeperError as error:
        sys.stderr.write(f"weirkeeper migrate: {error}\n")
        return exit_codes.FAILED


def _until_done(settings: Settings, app: App, stop: StopSignal, *, wait: bool) -> int:
    attempt = 0
    while not stop.requested:
        try:
            return _once(settings, app)
        except WeirkeeperError as error:
            if not (wait and error.transient):
                raise
        attempt += 1
        stop.wait(jittered(RECONNECT.delay(attempt)))
    return exit_codes.OK


def _once(settings: Settings, app: App) -> int:
    url = settings.database()
    try:
        applied = migrate(url, _tell)
        with connect(url, "migrate") as connection:
            declare(connection, app, replace=True)
    except DatabaseRefused as error:
        if error.sqlstate != MAY_NOT:
            raise
        raise ConfigurationError.of(
            "DATABASE_URL",
            "a role that may create schemas in its database, or owns ours",
            f"{masked(url)}: {error}",
            "grant it CREATE on the database, or run `weirkeeper migrate` as the owner first",
        ) from error
    _tell(f"schema up to date, {applied} migrations applied")
    return exit_codes.OK


def _tell(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
