"""Opening connections: the one place where a session gets its settings and its bounds.

Every wait on the network has a deadline that the system enforces: libpq would wait for ever on a
black-holed query, so keepalives (5/2/3) and tcp_user_timeout (8 s) end it within about 12 s.
"""

from __future__ import annotations

from enum import Enum
from typing import LiteralString

import psycopg

from shared.config.installation import schema_name
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement

Connection = psycopg.Connection[tuple[object, ...]]


class Use(Enum):
    """What a session is for; decides plans, durability and how long a statement may take.

    Values: plan_cache_mode, plans that read whole tables, synchronous_commit, statement timeout,
    lock timeout.
    """

    HOT = ("force_generic_plan", "off", "off", "30s", "10s")  # claims and finishes
    DURABLE = ("auto", "on", "on", "30s", "10s")  # relay passes, beats, declarations
    HANDLER = ("auto", "on", "on", "0", "0")  # a job's own timeout bounds what it asks
    ANSWERS = ("force_generic_plan", "off", "on", "2s", "1s")  # what callers wait for
    READ = ("auto", "on", "on", "2s", "1s")  # gauges and lists
    MIGRATE = ("auto", "on", "on", "0", "2s")


def connect(url: str, name: str, use: Use = Use.DURABLE) -> Connection:
    """Open a session in autocommit mode, so that no transaction is left open by accident.

    Args:
        url: libpq URI.
        name: shown in pg_stat_activity after the installation's schema ("weirkeeper "); cut at
            60 characters.
        use: what the session is for.

    Raises:
        DatabaseUnavailable: not reachable now; try again later.
        DatabaseRefused: reachable, but it will not have us (password, no such database).
    """
    conn = bare(url, name)
    settle(conn, use)
    return conn


def bare(url: str, name: str) -> Connection:
    """Open a session without settings: in a pooler's they would stay, for others' transactions.

    Args and errors: as of `connect`.
    """
    with translated():
        return psycopg.connect(
            url,
            autocommit=True,
            application_name=f"{schema_name()} {name}"[:60],
            connect_timeout=5,
            keepalives=1,
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=8000,
        )


def settle(conn: Connection, use: Use) -> None:
    """Give a session its settings.

    Raises:
        DatabaseUnavailable: it is gone.
    """
    with translated():
        conn.execute(*_settings(use))


def renew(conn: Connection, use: Use) -> None:
    """Make a session as it was when it was opened, in one round trip.

    Not DISCARD ALL: prepared statements are the driver's, and worth keeping.

    Raises:
        psycopg.Error: it cannot be; close it.
    """
    with psycopg.ClientCursor(conn) as cursor:  # binds here, so that many statements are one query
        text, params = _settings(use)
        cursor.execute(";".join((*_undone(), text)), params)


def _undone() -> tuple[LiteralString, ...]:
    return (
        statement("session/undo_role"),
        statement("session/undo_settings"),
        statement("session/undo_listening"),
        statement("session/undo_cursors"),
        statement("session/undo_temporary"),
        statement("session/undo_sequences"),
        statement("session/undo_locks"),
    )


def _settings(use: Use) -> tuple[LiteralString, dict[str, str]]:
    plan, joins, durable, timeout, lock = use.value
    return statement("session/settings"), {
        "plan_cache_mode": plan,
        "joins": joins,
        "synchronous_commit": durable,
        "statement_timeout": timeout,
        "lock_timeout": lock,
    }
