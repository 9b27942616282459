"""The embedded Postgres: its data folder and its configuration.

Before it: binaries, account, folders. After it: launch (runs it), postmaster (watches and stops
it). Never connects: what can be done without a client is done without one.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from shared.errors import ConfigurationError
from weirkeeper.server.account import Account
from weirkeeper.server.binaries import major
from weirkeeper.server.folders import socket_folder
from weirkeeper.server.private import write_private

USER = "weirkeeper"
_NAMES_A_CAUSE = re.compile(r"error|FATAL|PANIC|could not")
SOCKET_NAME = len(".s.PGSQL.65535.lock")
DEFAULTS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "120",
    "fsync": "on",
    "client_connection_check_interval": "1s",  # a vanished client ends its query
    "password_encryption": "scram-sha-256",
    "log_line_prefix": "%m [%p] %a ",
    "log_min_messages": "warning",
    "log_checkpoints": "off",
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """One data folder and what runs it.

    Attributes:
        binaries: folder of initdb and postgres.
        base: folder that holds data, socket and configuration.
        account: who runs it.
    """

    binaries: Path
    base: Path
    account: Account

    @property
    def data(self) -> Path:
        """Postgres' data folder."""
        return self.base / "postgres"

    @property
    def configuration(self) -> Path:
        """Our configuration file; outside the data folder, which may be another user's."""
        return self.base / "postgres.conf"

    def url(self, port: int, password: str) -> str:
        """How clients reach it."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{port}/{USER}"


def kept_password(file: Path) -> str:
    """The password in the file; a new one is made and kept (mode 0600) when there is none."""
    try:
        return file.read_text()
    except FileNotFoundError:
        password = secrets.token_urlsafe(24)
        write_private(file, password)
        return password


def initialise(cluster: Cluster, password: str, *, sync: bool = True) -> bool:
    """Make the data folder when there is none.

    Done in a folder aside that gets its name at the end, so that a kill leaves nothing half done.
    Each run has a folder of its own: the initdb of a start that was killed may still write to its.

    Args:
        cluster: where and as whom.
        password: of the superuser `weirkeeper`.
        sync: wait until all of it is on the disk (off for throwaway clusters).

    Returns:
        Whether it was made now.

    Raises:
        ConfigurationError: it is of another major version, or initdb failed.
    """
    if (cluster.data / "PG_VERSION").is_file():
        _refuse_other_version(cluster)
        return False
    for left in cluster.base.glob("postgres.new*"):
        shutil.rmtree(left, ignore_errors=True)
    aside = cluster.base / f"postgres.new-{secrets.token_hex(4)}"
    cluster.account.own_folder(aside)
    secret = cluster.base / "initdb.password"
    secret.unlink(missing_ok=True)
    write_private(secret, password)
    os.chown(secret, cluster.account.uid, cluster.account.gid)
    try:
        _initdb(cluster, aside, secret, sync=sync)
        _create_database(cluster, aside)
    finally:
        secret.unlink()
    aside.rename(cluster.data)
    return True


def configure(cluster: Cluster, port: int, settings: Mapping[str, str] | None = None) -> Path:
    """Write the configuration for this start; return the folder of its socket.

    Args:
        cluster: whose.
        port: on 127.0.0.1.
        settings: over our defaults.
    """
    sockets = socket_folder(cluster.base / "socket", SOCKET_NAME, cluster.account)
    ours = {
        **DEFAULTS,
        "port": str(port),
        "unix_socket_directories": str(sockets),
        "unix_socket_permissions": "0700",
        **(settings or {}),
    }
    lines = [f"include = {_quoted(str(cluster.data / 'postgresql.conf'))}"]
    lines += [f"{name} = {_quoted(value)}" for name, value in ours.items()]
    fresh = cluster.configuration.with_suffix(".new")
    fresh.write_text("\n".join(lines) + "\n")
    fresh.chmod(0o644 if cluster.account.name else 0o600)  # another user's Postgres reads it
    fresh.rename(cluster.configuration)
    return sockets


def _initdb(cluster: Cluster, data: Path, secret: Path, *, sync: bool) -> None:
    _run(
        cluster,
        "initdb",
        f"--pgdata={data}",
        f"--username={USER}",
        f"--pwfile={secret}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        # libc's C.UTF-8: with C or the builtin provider Chinese trigrams come out empty.
        "--locale=C.UTF-8",
        "--locale-provider=libc",
        "--no-instructions",
        *([] if sync else ["--no-sync"]),
    )


def _create_database(cluster: Cluster, data: Path) -> None:
    statement = files("weirkeeper.server").joinpath("create_database.sql").read_text()
    arguments = ("--single", "-j", "-D", str(data), "postgres")
    _run(cluster, "postgres", *arguments, given=statement + ";\n\n")


def _run(cluster: Cluster, program: str, *arguments: str, given: str = "") -> None:
    done = subprocess.run(
        [cluster.binaries / program, *arguments],
        check=False,
        cwd="/",
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        start_new_session=True,  # Ctrl-C is the server's, who stops once this is done
        **cluster.account.dropped,
    )
    if done.returncode != 0:
        told = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise ConfigurationError.of(
            "embedded Postgres",
            f"{program} to succeed",
            _cause(told) or f"exit code {done.returncode}",
            "mend what it names, or set DATABASE_URL to a server of your own",
        )


def _cause(told: list[str]) -> str:
    """The first line that names it: the last ones only tell what was undone then."""
    named = [line for line in told if _NAMES_A_CAUSE.search(line)]
    return (named or told[-1:] or [""])[0]


def _refuse_other_version(cluster: Cluster) -> None:
    written = (cluster.data / "PG_VERSION").read_text().strip()
    runs = major(cluster.binaries)
    if written != str(runs):
        raise ConfigurationError.of(
            "embedded Postgres",
            f"a data folder of version {runs}",
            f"{cluster.data} of version {written}",
            f"set WEIRKEEPER_PGBIN to binaries of version {written}, or dump and load with "
            "pg_dump, or set WEIRKEEPER_HOME to another folder",
        )


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
