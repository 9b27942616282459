"""Migrations: numbered SQL, forward only, one at a time, each in its own transaction.

Run by `weirkeeper migrate` and by nothing else: processes run no DDL, they wait for a schema that
is new enough (shared.postgres.schema.accepted). A statement that waits for a lock makes everybody
else wait behind it, so it waits for half a second, lets the others through, and is tried again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

import psycopg

from shared.config.installation import SETTING, schema_name
from shared.errors import ConfigurationError, DatabaseUnavailable
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import translate, translated
from shared.postgres.driver.statements import rendered, statement

OLDEST_SERVER = 150000
TRIES = 40  # of one migration
LOCK_WAIT = "500ms"  # of each; a claim waits behind it
REST = 1.0  # seconds between two, for those who waited
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_BREAKING = re.compile(r"^-- breaking: (yes|no)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file. `breaking`: programs that do not know it must not run on it."""

    version: int
    name: str
    text: LiteralString
    breaking: bool

    @property
    def checksum(self) -> str:
        """sha256 of the text: what was applied must be what stands here, whatever the schema."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@cache
def migrations() -> tuple[Migration, ...]:
    """Every migration of this build, oldest first."""
    found = []
    for file in (files("shared.postgres") / "migrations").iterdir():
        if match := _FILE.fullmatch(file.name):
            text = file.read_text("utf-8")
            mark = _BREAKING.search(text)
            if mark is None:
                raise ConfigurationError(f"{file.name}: expected a line '-- breaking: yes|no'")
            found.append(Migration(int(match[1]), match[2], text, mark[1] == "yes"))
    return tuple(sorted(found, key=lambda m: m.version))


def applied(conn: Connection) -> list[tuple[int, str, str, bool]]:
    """(version, name, checksum, breaking) of what the database has, oldest first."""
    exists = conn.execute(statement("migrator/exists")).fetchone()
    if exists is None or not exists[0]:
        return []
    return cast(
        "list[tuple[int, str, str, bool]]", conn.execute(statement("migrator/applied")).fetchall()
    )


def migrate(url: str, tell: Callable[[str], None] = lambda _: None) -> int:
    """Bring the database to this build's schema.

    Args:
        url: libpq URI of a role that may create schemas, if anything is missing.
        tell: called with a sentence for each migration applied.

    Returns:
        How many were applied.

    Raises:
        ConfigurationError: the server is older than 15, or an applied migration differs.
        DatabaseUnavailable: not reachable, or a lock was not to be had.
    """
    with connect(url, "migrate", Use.MIGRATE) as conn, translated():
        _check_server(conn)
        _check_schema_name(conn)
        _wait_for_locks(conn, "60s")
        conn.execute(statement("migrator/lock"))
        _wait_for_locks(conn, LOCK_WAIT)
        have = {version: checksum for version, _, checksum, _ in applied(conn)}
        missing = [m for m in migrations() if _is_missing(m, have)]
        if missing:  # where none is, a role that may create nothing will do
            conn.execute(statement("migrator/bootstrap"))
        for migration in missing:
            _apply(conn, migration)
            tell(f"applied migration {migration.version:04} {migration.name}")
        return len(missing)


def _wait_for_locks(conn: Connection, at_most: str) -> None:
    conn.execute(statement("migrator/lock_timeout"), {"lock_timeout": at_most})


def _check_server(conn: Connection) -> None:
    row = conn.execute(statement("session/server_version")).fetchone()
    if row is None or cast("int", row[0]) < OLDEST_SERVER:
        raise ConfigurationError.of(
            "DATABASE_URL", "Postgres 15 or newer", row and row[0], "upgrade the server"
        )


def _check_schema_name(conn: Connection) -> None:
    """A word of SQL would have to be quoted wherever it stands, and nobody does."""
    name = schema_name()
    row = conn.execute(statement("migrator/quoted"), {"name": name}).fetchone()
    if row is None or row[0] != name:
        raise ConfigurationError.of(
            SETTING, "a name that is no word of SQL", name, "choose another"
        )


def _is_missing(migration: Migration, have: dict[int, str]) -> bool:
    known = have.get(migration.version)
    if known is not None and known != migration.checksum:
        raise ConfigurationError.of(
            f"migration {migration.version:04}",
            "the text that was applied (sha256 " + known[:12] + ")",
            migration.checksum[:12],
            "restore the file; add a new migration instead of editing one",
        )
    return known is None


def _apply(conn: Connection, migration: Migration) -> None:
    for attempt in range(TRIES):
        try:
            with conn.transaction():
                conn.execute(rendered(migration.text))
                conn.execute(
                    statement("migrator/record"),
                    {
                        "version": migration.version,
                        "name": migration.name,
                        "checksum": migration.checksum,
                        "breaking": migration.breaking,
                    },
                )
        except psycopg.errors.LockNotAvailable as error:
            if attempt == TRIES - 1:
                raise DatabaseUnavailable(
                    f"migration {migration.version:04}: expected its locks within a minute; "
                    f"somebody holds them ({translate(error)}); end that transaction, run again"
                ) from error
            conn.execute(statement("migrator/rest"), {"seconds": REST})
        else:
            return
