"""What somebody waits for: a statement that is prepared once a session, sent without a cursor.

Beneath claims, ends, and what callers wait for. A process that slept runs everything cold, and half
of what the driver's cursor does for one row is then paid in the time of whoever waits. So values go
out as texts, one call of libpq sends them and waits with the interpreter let go, and the driver's
own loaders read the answer. Not to be interrupted: for threads that no signal reaches, and for
statements that are bounded by their session's timeouts.

Within a transaction, and where each statement begins one, it is the driver's cursor all the same:
after a rollback the driver drops all that is prepared, and what is missing can be prepared anew
only where no transaction fails by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, LiteralString
from weakref import WeakKeyDictionary, ref

from psycopg import Error, OperationalError, errors
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from shared.postgres.connect import Connection
from shared.postgres.prepared import numbered
from shared.postgres.statements import statement

_BINARY = 1
_WITHIN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_GONE = "26000"  # no such prepared statement
_known: WeakKeyDictionary[Connection, dict[str, Hot]] = WeakKeyDictionary()


class Hot:
    """One statement of one session; use it from one thread.

    Refers weakly to the driver's connection, which it must not keep alive.
    """

    def __init__(self, conn: Connection, text: LiteralString) -> None:
        self._conn = ref(conn)
        self._pgconn = conn.pgconn
        self._text = text
        self._name, self._query, self._names = numbered(text)
        self._loaders = Transformer()
        self._prepared = False

    def __call__(self, values: Mapping[str, str | None]) -> list[tuple[Any, ...]]:
        """Run it; its rows.

        Args:
            values: by name, as Postgres reads them, of the types that the statement gives them.

        Raises:
            psycopg.Error: as of any statement.
        """
        conn = self._conn()
        within = self._pgconn.transaction_status in _WITHIN
        if conn is not None and (within or not conn.autocommit):
            return conn.cursor(binary=True).execute(self._text, values).fetchall()
        if not self._prepared:
            self._checked(self._pgconn.prepare(self._name, self._query))
            self._prepared = True
        params: list[Any] = [None if (v := values[n]) is None else v.encode() for n in self._names]
        result = self._pgconn.exec_prepared(self._name, params, None, _BINARY)
        if result.status != ExecStatus.TUPLES_OK:
            if self._error(result).sqlstate != _GONE:
                self._checked(result)
            self._prepared = False
            return self(values)
        self._loaders.set_pgresult(result)
        return self._loaders.load_rows(0, result.ntuples, tuple)

    def _checked(self, result: Any) -> None:
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return
        error = self._error(result)
        if error.sqlstate is None and self._pgconn.status == ConnStatus.BAD:
            raise OperationalError(str(error))
        raise error

    def _error(self, result: Any) -> Error:
        return errors.error_from_result(result, encoding="utf-8")


def hot(conn: Connection, name: str) -> Hot:
    """A statement of a session, by its name; see shared.postgres.statements."""
    known = _known.get(conn)
    if known is None:
        known = _known[conn] = {}
    found = known.get(name)
    if found is None:
        found = known[name] = Hot(conn, statement(name))
    return found


def as_array(items: Iterable[object]) -> str:
    """An array as Postgres reads it: of numbers, or of names in quotes that need no escape."""
    return "{" + ",".join(map(str, items)) + "}"


def as_texts(items: Iterable[str | None]) -> str:
    """An array of any texts as Postgres reads it."""
    return as_array("NULL" if item is None else _quoted(item) for item in items)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
