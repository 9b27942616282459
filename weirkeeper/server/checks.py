"""Everything that can be refused before anything starts (`weirkeeper check`, `server --check`).

supervisord itself exits 0 whatever happened to its programs, so a mistake is told here, at once
and once, instead of by eight programs in turn.
"""

from __future__ import annotations

import sys
from configparser import RawConfigParser
from dataclasses import dataclass

from shared.app import App, load_app
from shared.config.budget import Budget, budget
from shared.config.queues import Queue
from shared.config.settings import Settings
from shared.config.urls import masked
from shared.errors import ConfigurationError, WeirkeeperError
from shared.postgres.connect import Connection, Use, connect
from shared.postgres.limits import check_encoding, usable_connections
from shared.postgres.schema import check_schema
from weirkeeper.server import binaries, compose, lint
from weirkeeper.server.account import Account
from weirkeeper.server.embedded import DEFAULTS
from weirkeeper.server.folders import check_home, prepare_home
from weirkeeper.server.leftovers import supervised
from weirkeeper.server.ports import refuse_taken
from weirkeeper.server.streams import check_streams

RESERVED = 3  # superuser_reserved_connections, Postgres' default


@dataclass(frozen=True, slots=True)
class Deployment:
    """What has been checked and is about to run."""

    app: App
    queues: dict[str, Queue]
    budget: Budget
    supervision: RawConfigParser


def check(settings: Settings) -> Deployment:
    """Refuse what cannot work.

    Raises:
        ConfigurationError: the first mistake, with what was expected.
    """
    if not sys.platform.startswith("linux"):
        raise ConfigurationError.of(
            "operating system",
            "Linux (prctl, /proc, pidfd)",
            sys.platform,
            "run it on Linux, or in a Linux container",
        )
    check_home(settings.home)
    app = load_app(settings.app)
    queues = settings.tuned(app.all_queues)
    needed = budget(queues.values())
    if settings.embedded:
        needed.check(int(DEFAULTS["max_connections"]) - RESERVED)
    else:
        check_database(settings.database(), needed)
    return Deployment(app, queues, needed, compose.read(settings.home))


def check_server(deployment: Deployment, settings: Settings) -> list[str]:
    """Refuse what `weirkeeper server` would refuse once it starts.

    Ports are left out while processes of this home run: those have them.

    Returns:
        What plain supervisord needs and this server adds by itself, a line each.

    Raises:
        ConfigurationError: the first mistake.
    """
    if settings.embedded:
        binaries.check(settings.pgbin, Account.choose(settings.postgres_user))
    if not supervised(settings.home):
        refuse_taken(settings)
    added = compose.fit(deployment.supervision, settings, deployment.queues)
    check_supervision(deployment, settings)
    return [
        f"for plain supervisord, {line}; `weirkeeper server` does so by itself" for line in added
    ]


def check_plain(deployment: Deployment, settings: Settings) -> None:
    """Refuse what `supervisord -c supervisord.conf` cannot run, and make its folders.

    Raises:
        ConfigurationError: the first mistake.
    """
    settings.database()
    check_supervision(deployment, settings)
    check_streams(deployment.supervision)
    prepare_home(settings.home)


def check_supervision(deployment: Deployment, settings: Settings) -> None:
    """Refuse a supervisord.conf that would lose work at a stop."""
    lint.lint(deployment.supervision, settings, deployment.queues)


def check_database(url: str, needed: Budget) -> None:
    """Refuse a database that is away, will not have us, is too small or too new.

    Args:
        url: DATABASE_URL.
        needed: connections of this deployment.

    Raises:
        ConfigurationError: told in one line, without the password.
    """
    try:
        with connect(url, "check", Use.READ) as connection:
            check_encoding(connection)
            needed.check(usable_connections(connection))
            _refuse_newer_schema(connection)
    except ConfigurationError:
        raise
    except WeirkeeperError as error:
        raise ConfigurationError.of(
            "DATABASE_URL",
            "a Postgres that lets us in",
            f"{masked(url)}: {error}",
            "start it, or correct the URL",
        ) from error


def _refuse_newer_schema(connection: Connection) -> None:
    try:
        check_schema(connection)
    except ConfigurationError:
        raise
    except WeirkeeperError:
        return  # too old or empty: about to be migrated
