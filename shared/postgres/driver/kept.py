"""A session that is kept: opened when first used, opened again when lost, used by one at a time.

For application processes, whose threads share it. A lost session fails the call that met it; the
next call opens another. Must never retry what failed: the caller knows whether it may.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from shared.errors import Conflict, WeirkeeperError
from shared.postgres.driver.connect import Connection, Use, connect


class KeptSession:
    """One session of a process.

    Args:
        url: libpq URI.
        name: of the session.
        use: what it is for.
    """

    def __init__(self, url: str, name: str, use: Use = Use.DURABLE) -> None:
        self._url = url
        self._name = name
        self._use = use
        self._lock = threading.RLock()  # who is told of a batch may ask for the next
        self._conn: Connection | None = None
        self._closed = False

    @contextmanager
    def use(self) -> Iterator[Connection]:
        """The session, for the length of the block.

        Raises:
            DatabaseUnavailable: it cannot be opened now.
            Conflict: it was closed for good.
        """
        with self._lock:
            if self._closed:
                raise Conflict(
                    f"{self._name}: expected a runtime that has not been stopped; got one that "
                    "has; build another"
                )
            if self._conn is None or self._conn.closed:
                self._conn = connect(self._url, self._name, self._use)
            try:
                yield self._conn
            except WeirkeeperError:
                self._drop_if_lost()
                raise

    def close(self) -> None:
        """End it for good, after whoever uses it; harmless when repeated."""
        with self._lock:
            self._closed = True
            if self._conn is not None:
                self._conn.close()

    def _drop_if_lost(self) -> None:
        if self._conn is not None and self._conn.broken:
            self._conn.close()
            self._conn = None
