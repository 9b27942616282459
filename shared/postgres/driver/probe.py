"""Is this connection direct? Behind a pooler in transaction mode, LISTEN is silently dead.

Asked by shared.postgres.schema.boot before a program works. What we rely on is a session's: LISTEN,
the sleep lock, settings, prepared statements. A pooler that lends a server session for one
transaction breaks all of it without an error, and our settings would leak into the application's
transactions. A pooler that lends it for as long as the client stays is harmless.
"""

from __future__ import annotations

from typing import Any

from psycopg import sql

from shared.errors import ConfigurationError
from shared.postgres.driver.connect import Connection, bare
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement

PATIENCE = 2.0  # seconds that a notice may take


def require_direct(conn: Connection, url: str, name: str) -> None:
    """Refuse a connection that a pooler shares with others; where there is none, one round trip.

    Args:
        conn: in autocommit mode, just opened, without settings: what is refused is left as it was.
        url: what it was opened with.
        name: of the session.

    Raises:
        ConfigurationError: notices do not arrive.
        DatabaseUnavailable: not now.
    """
    with translated():
        row: Any = conn.execute(statement("session/backend_pid")).fetchone()
    if row[0] == conn.info.backend_pid or _hears(url, name):
        return
    raise ConfigurationError(
        "database: expected a direct connection; got one through a pooler that lends sessions for "
        "one transaction, where LISTEN, session settings and prepared statements do not work; set "
        "WEIRKEEPER_DIRECT_URL to the database itself (DATABASE_URL may stay with the pooler)"
    )


def _hears(url: str, name: str) -> bool:
    """Whether what one session says on a channel reaches another that listens."""
    with (
        bare(url, f"{name} probe") as listening,
        bare(url, f"{name} probe") as saying,
        translated(),
    ):
        row: Any = listening.execute(statement("session/probe_channel")).fetchone()
        listen = sql.SQL(statement("session/probe_listen"))
        listening.execute(listen.format(channel=sql.Identifier(row[0])))
        saying.execute(statement("session/probe_notify"), {"channel": row[0]})
        # A list: a generator that is not at its end keeps its connection locked.
        heard = list(listening.notifies(timeout=PATIENCE, stop_after=1))
        return any(notice.channel == row[0] for notice in heard)
