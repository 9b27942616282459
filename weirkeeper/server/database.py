"""The embedded Postgres of one server, made ready to be started by its supervisord."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shared.config.settings import Settings
from shared.errors import ConfigurationError
from weirkeeper.server import binaries, embedded, launch, postmaster
from weirkeeper.server.account import Account
from weirkeeper.server.folders import postgres_base
from weirkeeper.server.ports import free_port

STOP_WAIT = 60.0  # seconds for a shutdown checkpoint


@dataclass(frozen=True, slots=True)
class EmbeddedDatabase:
    """Ready to start: its URL, command line, and where its sockets and data are."""

    cluster: embedded.Cluster
    url: str
    command: list[str]
    sockets: Path

    def stop(self) -> bool:
        """End what still runs on the data folder; return whether nothing is left."""
        return postmaster.stop(self.cluster.data, signal.SIGINT, STOP_WAIT)


def find_cluster(settings: Settings, home: Path) -> embedded.Cluster:
    """Find the binaries and the data's place, and stop a stray postmaster there: it has our port.

    Args:
        settings: user, binaries.
        home: made by folders.prepare_home.

    Raises:
        ConfigurationError: no binaries, or a postmaster that does not end.
    """
    account = Account.choose(settings.postgres_user)
    found = binaries.find(settings.pgbin, account)
    cluster = embedded.Cluster(found, postgres_base(home, account), account)
    _stop_stray(cluster)
    return cluster


def prepare(
    cluster: embedded.Cluster, settings: Settings, home: Path, tell: Callable[[str], None]
) -> EmbeddedDatabase:
    """Make the data folder when there is none, and write the configuration.

    Args:
        cluster: from find_cluster.
        settings: port.
        home: made by folders.prepare_home.
        tell: gets a line for what takes a while or surprises.

    Raises:
        ConfigurationError: another version's data.
    """
    password = home / "postgres.password"
    if not password.exists():
        _set_aside(cluster, tell)
    if embedded.initialise(cluster, embedded.kept_password(password)):
        tell(f"made a Postgres data folder in {cluster.data}")
    port = settings.postgres_port or free_port()
    sockets = embedded.configure(cluster, port)
    # SIGTERM lets clients finish: when supervisord is killed, its programs drain first.
    command = launch.command(cluster, signal.SIGTERM)
    url = cluster.url(port, embedded.kept_password(password))
    return EmbeddedDatabase(cluster, url, command, sockets)


def _stop_stray(cluster: embedded.Cluster) -> None:
    if not postmaster.stop(cluster.data, signal.SIGINT, STOP_WAIT):
        stray = postmaster.find(cluster.data)
        raise ConfigurationError.of(
            "embedded Postgres",
            f"no other server on {cluster.data}",
            f"process {stray.pid if stray else 'unknown'}, which does not end",
            "stop it, or set WEIRKEEPER_HOME to another folder",
        )


def _set_aside(cluster: embedded.Cluster, tell: Callable[[str], None]) -> None:
    """Keep data whose home folder was removed (root's lies elsewhere): its password is gone."""
    if not cluster.data.exists():
        return
    aside = cluster.base / "postgres.before"
    shutil.rmtree(aside, ignore_errors=True)
    cluster.data.rename(aside)
    tell(f"its home is new, so earlier data was set aside in {aside}")
