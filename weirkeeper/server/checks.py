"""Everything that can be refused before anything starts (`weirkeeper check`, `server --check`).

supervisord itself exits 0 whatever happened to its programs, so a mistake is told here, at once
and once, instead of by eight programs in turn.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from configparser import RawConfigParser
from dataclasses import dataclass
from pathlib import Path

from shared.app import App, load_app
from shared.config.budget import Budget, budget, overdrawn
from shared.config.queues import Queue
from shared.config.settings import Settings
from shared.config.urls import masked
from shared.errors import ConfigurationError, WeirkeeperError
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import is_away
from shared.postgres.driver.limits import check_encoding, usable_connections
from shared.postgres.processes.registry import needed_by_all
from shared.postgres.schema.accepted import check_schema
from shared.services import exit_codes
from weirkeeper.server import binaries, compose, lint
from weirkeeper.server.account import Account
from weirkeeper.server.embedded import DEFAULTS
from weirkeeper.server.folders import check_home, prepare_home
from weirkeeper.server.leftovers import supervised
from weirkeeper.server.ports import refuse_taken
from weirkeeper.server.slots import processes
from weirkeeper.server.streams import check_streams

IMPORTS = 60.0  # seconds that the handlers of a queue may take to be imported, as at its start
NOWHERE = "postgresql://nobody@127.0.0.1:1/none"
RESERVED = 3  # superuser_reserved_connections, Postgres' default


@dataclass(frozen=True, slots=True)
class Deployment:
    """What has been checked and is about to run."""

    app: App
    queues: dict[str, Queue]
    budget: Budget
    supervision: RawConfigParser
    notes: tuple[str, ...] = ()


def check(settings: Settings, file: Path | None = None) -> Deployment:
    """Refuse what cannot work; what a person should know is among the notes.

    Args:
        settings: of the deployment.
        file: another supervisord.conf than the one that ships.

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
    supervision = compose.read(settings.home, file)
    needed = budget(queues.values(), processes(supervision), app.sessionless)
    notes: list[str] = []
    if settings.embedded:
        needed.check(int(DEFAULTS["max_connections"]) - RESERVED)
    else:
        notes = check_database(settings.database(), needed)
    return Deployment(app, queues, needed, supervision, tuple(notes))


def check_handlers(settings: Settings, queues: Iterable[str]) -> None:
    """Import every queue's handlers as its fork server will, side by side, each in a process.

    Raises:
        ConfigurationError: one refuses; its own line is told.
    """
    app = load_app(settings.app)
    busy = {kind.queue for kind in app.all_kinds.values()}
    url = settings.database_url or NOWHERE  # nothing connects
    started = [(name, _checking(name, url)) for name in queues if name in busy]
    problems = [told for name, process in started if (told := _told(name, process))]
    if problems:
        raise ConfigurationError(problems[0])


def _checking(queue: str, url: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-P", "-m", "weirkeeper.identity", "workers", queue, "--check"]
    return subprocess.Popen(
        ["/usr/bin/env", f"DATABASE_URL={url}", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _told(queue: str, process: subprocess.Popen[str]) -> str:
    """What is wrong with a queue's handlers, or ""."""
    try:
        _, said = process.communicate(timeout=IMPORTS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"queue {queue}: its handlers were not imported within {IMPORTS:g} s"
    if process.returncode == exit_codes.OK:
        return ""
    last = [line for line in said.splitlines() if line.strip()][-1:]
    return f"queue {queue}: {' '.join(last).removeprefix('weirkeeper worker: ')}"


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


def check_database(url: str, needed: Budget) -> list[str]:
    """Refuse a database that will not have us, is too small or too new.

    One that is away is none of these: programs wait for it. That, and a live sum that leaves the
    application too little, is told.

    Args:
        url: DATABASE_URL.
        needed: connections of this deployment.

    Returns:
        Notes, a line each.

    Raises:
        ConfigurationError: told in one line, without the password.
    """
    try:
        with connect(url, "check", Use.READ) as connection:
            check_encoding(connection)
            usable = usable_connections(connection)
            needed.check(usable)
            if not _has_schema(connection):
                return []  # too old or empty: about to be migrated
            return [line for line in (overdrawn(needed_by_all(connection), usable),) if line]
    except ConfigurationError:
        raise
    except WeirkeeperError as error:
        if is_away(error):
            away = f"{masked(url)} does not answer: {error}"
            return [f"{away}; budget and schema are unchecked, programs wait for it"]
        raise ConfigurationError.of(
            "DATABASE_URL",
            "a Postgres that lets us in",
            f"{masked(url)}: {error}",
            "start it, or correct the URL",
        ) from error


def _has_schema(connection: Connection) -> bool:
    """Whether it is migrated far enough; one that is too new is refused."""
    try:
        check_schema(connection)
    except ConfigurationError:
        raise
    except WeirkeeperError:
        return False
    return True
