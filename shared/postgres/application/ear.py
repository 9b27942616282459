"""ADAPTER of the port Ear: one direct connection that LISTENs on the channels of waiters.

Used from one thread (shared.notices.source). A pooler in transaction mode would swallow LISTEN:
the URL must be the direct one.
"""

from __future__ import annotations

import os
import select
import threading

from psycopg import sql

from shared.notices.channels import CHANNELS
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import rendered, statement


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
        self._lock = threading.Lock()  # the descriptor below
        self._interrupt = -1
        self._ours = {rendered(channel): channel for channel in CHANNELS}  # another schema's differ

    def open(self) -> None:
        """Connect and LISTEN; see shared.notices.source.Ear."""
        self.close()
        conn = connect(self._url, f"{self._name} listen", Use.READ)
        self._conn = conn
        with self._lock:
            self._interrupt = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        with translated():
            for channel in self._ours:
                listen = sql.SQL(statement("waits/listen"))
                conn.execute(listen.format(channel=sql.Identifier(channel)))

    def notices(self, seconds: float) -> list[tuple[str, str]]:
        """Hear for a while; see shared.notices.source.Ear."""
        if self._conn is None:
            raise RuntimeError("the ear is not open")
        with translated():
            # What arrived together with an answer is in no socket any more: look first.
            heard = list(self._conn.notifies(timeout=0))
            if not heard:
                select.select([self._conn.fileno(), self._interrupt], [], [], seconds)
                heard = list(self._conn.notifies(timeout=0))
        return [(self._ours[notice.channel], notice.payload) for notice in heard]

    def interrupt(self) -> None:
        """End a `notices` that waits, from another thread."""
        with self._lock:
            if self._interrupt >= 0:
                os.eventfd_write(self._interrupt, 1)

    def backend_pids(self) -> list[int]:
        """Server process of the session, for the process row."""
        conn = self._conn
        return [] if conn is None or conn.closed else [conn.info.backend_pid]

    def close(self) -> None:
        """End the session; see shared.notices.source.Ear."""
        if self._conn is not None:
            self._conn.close()
        self._conn = None
        with self._lock:
            if self._interrupt >= 0:
                os.close(self._interrupt)
            self._interrupt = -1
