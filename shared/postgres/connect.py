"""Opening connections: the one place where a session gets its settings and its bounds.

Every wait on the network has a deadline that the system enforces: libpq would wait for ever on a
black-holed query, so keepalives (5/2/3) and tcp_user_timeout (8 s) end it within about 12 s.
"""

from __future__ import annotations

from enum import Enum

import psycopg

from shared.config.installation import schema_name
from shared.postgres.failures import translated
from shared.postgres.statements import statement

Connection = psycopg.Connection[tuple[object, ...]]


class Use(Enum):
    """What a session is for; decides plans, durability and how long a statement may take.

    Values: plan_cache_mode, plans that read whole tables, synchronous_commit, statement timeout,
    lock timeout.
    """

    HOT = ("force_generic_plan", "off", "off", "30s", "10s")  # claims and finishes
    DURABLE = ("auto", "on", "on", "30s", "10s")  # relay passes, beats, declarations
    HANDLER = ("auto", "on", "on", "0", "0")  # a job's own timeout bounds what it asks
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
    with translated():
        conn = psycopg.connect(
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
        plan, joins, durable, timeout, lock = use.value
        conn.execute(
            statement("session/settings"),
            {
                "plan_cache_mode": plan,
                "joins": joins,
                "synchronous_commit": durable,
                "statement_timeout": timeout,
                "lock_timeout": lock,
            },
        )
        return conn
