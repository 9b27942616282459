"""ADAPTER of the port Ear: one direct connection that LISTENs on the channels of waiters.

Used from one thread (shared.notices.source). A pooler in transaction mode would swallow LISTEN:
the URL must be the direct one.
"""

from __future__ import annotations

from psycopg import sql

from shared.notices.channels import CHANNELS
from shared.postgres.connect import Connection, Use, connect
from shared.postgres.failures import translated
from shared.postgres.statements import statement


class PostgresEar:
    """Hears `weirkeeper_final` and `weirkeeper_fanout`.

    Args:
        url: libpq URI, direct.
        name: of the session.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._conn: Connection | None = None

    def open(self) -> None:
        """Connect and LISTEN; see shared.notices.source.Ear."""
        self.close()
        conn = connect(self._url, f"{self._name} listen", Use.READ)
        self._conn = conn
        with translated():
            for channel in CHANNELS:
                listen = sql.SQL(statement("waits/listen"))
                conn.execute(listen.format(channel=sql.Identifier(channel)))

    def notices(self, seconds: float) -> list[tuple[str, str]]:
        """Hear for a while; see shared.notices.source.Ear."""
        if self._conn is None:
            raise RuntimeError("the ear is not open")
        with translated():
            heard = self._conn.notifies(timeout=seconds, stop_after=1)
            return [(notice.channel, notice.payload) for notice in heard]

    def backend_pids(self) -> list[int]:
        """Server process of the session, for the process row."""
        conn = self._conn
        return [] if conn is None or conn.closed else [conn.info.backend_pid]

    def close(self) -> None:
        """End the session."""
        if self._conn is not None:
            self._conn.close()
        self._conn = None
