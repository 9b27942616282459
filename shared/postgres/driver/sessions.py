"""ADAPTER: the one connection that a child may have, opened when a handler first asks for it.

Never inherited and never shared: made in the child, used by one job at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from psycopg.pq import TransactionStatus

from shared.events.event import Event
from shared.postgres.driver.connect import Connection, Use, connect, renew
from shared.postgres.driver.failures import translated
from shared.postgres.driver.network_guard import watch_network
from shared.postgres.driver.statements import statement


class ChildSession:
    """Opens the connection lazily, and again when it is gone.

    Args:
        url: libpq URI.
        name: of the session.
    """

    def __init__(self, url: str, name: str) -> None:
        self._url = url
        self._name = name
        self._conn: Connection | None = None
        self._as_opened: tuple[object, ...] = ()
        self._lent = False

    def guard(self) -> None:
        """Refuse network calls of this process while a transaction is open on the connection."""
        watch_network(lambda: self._conn)

    @contextmanager
    def connection(self, pristine: bool = False) -> Iterator[Connection]:
        """The connection, in autocommit mode, for the length of the block.

        A transaction that the block leaves open is rolled back.

        Args:
            pristine: the block promises to leave the session as it found it.

        Raises:
            DatabaseUnavailable: it cannot be opened now.
        """
        self._lent = self._lent or not pristine
        with self._opened() as conn:
            yield conn

    def renew(self) -> None:
        """After a job: nothing that it set, locked or made for the session reaches the next one."""
        conn, lent, self._lent = self._conn, self._lent, False
        if conn is None or conn.closed or not lent:
            return
        try:
            if _client_side(conn) == self._as_opened:
                renew(conn, Use.HANDLER)
            else:
                conn.close()
        except Exception:  # noqa: BLE001  (whatever is wrong with it, the next job gets another)
            conn.close()

    def load_event(self, event_id: str) -> Event | None:
        """An event by its id; None = it was pruned.

        Raises:
            DatabaseUnavailable: try again later.
        """
        with self._opened() as conn, translated():
            row = conn.execute(statement("events/load"), {"event_id": event_id}).fetchone()
        if row is None:
            return None
        return Event(*cast("tuple[str, str, str, str, dict[str, Any], str]", row))

    @contextmanager
    def _opened(self) -> Iterator[Connection]:
        if self._conn is None or self._conn.closed:
            self._conn = connect(self._url, self._name, Use.HANDLER)
            self._as_opened = _client_side(self._conn)
        try:
            yield self._conn
        finally:
            self._clean()

    def _clean(self) -> None:
        """Leave no transaction of one block to the next."""
        conn = self._conn
        if conn is None or conn.closed or conn.info.transaction_status is TransactionStatus.IDLE:
            return
        try:
            conn.rollback()
        except Exception:  # noqa: BLE001  (whatever is wrong with it, the next job gets another)
            conn.close()


def _client_side(conn: Connection) -> tuple[object, ...]:
    """What a handler may have changed of the connection that the server does not know."""
    return (
        conn.autocommit,
        conn.row_factory,
        conn.isolation_level,
        conn.read_only,
        conn.deferrable,
    )
