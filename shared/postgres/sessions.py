"""ADAPTER: the one connection that a child may have, opened when a handler first asks for it.

Never inherited and never shared: made in the child, used by one job at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from psycopg.pq import TransactionStatus

from shared.events.event import Event
from shared.postgres.connect import Connection, Use, connect
from shared.postgres.failures import translated
from shared.postgres.network_guard import watch_network
from shared.postgres.statements import statement


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

    def guard(self) -> None:
        """Refuse network calls of this process while a transaction is open on the connection."""
        watch_network(lambda: self._conn)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """The connection, in autocommit mode, for the length of the block.

        A transaction that the block leaves open is rolled back.

        Raises:
            DatabaseUnavailable: it cannot be opened now.
        """
        if self._conn is None or self._conn.closed:
            self._conn = connect(self._url, self._name, Use.HANDLER)
        try:
            yield self._conn
        finally:
            self._clean()

    def load_event(self, event_id: str) -> Event | None:
        """An event by its id; None = it was pruned.

        Raises:
            DatabaseUnavailable: try again later.
        """
        with self.connection() as conn, translated():
            row = conn.execute(statement("events/load"), {"event_id": event_id}).fetchone()
        if row is None:
            return None
        return Event(*cast("tuple[str, str, str, str, dict[str, Any], str]", row))

    def _clean(self) -> None:
        """Leave nothing of one job to the next."""
        conn = self._conn
        if conn is None or conn.closed or conn.info.transaction_status is TransactionStatus.IDLE:
            return
        try:
            conn.rollback()
        except Exception:  # noqa: BLE001  (whatever is wrong with it, the next job gets another)
            conn.close()
