"""A statement that is prepared once a session and sent without a cursor: what is asked most.

Beneath claims, ends, what callers wait for, and deliveries. The driver makes a cursor and looks up
how to read and write each value, each time: half of what one row costs who asks, and a process that
slept pays it in the time of whoever waits. Here values go out as texts, and there are two ways:

- `rows` makes one call of libpq, with the interpreter let go, and has the driver's loaders read the
  answer. Not to be interrupted: for threads that no signal reaches, and for statements that are
  bounded by their session's timeouts.
- `raw` waits, and is interrupted, as the driver's cursors do: for children, whose jobs are ended by
  a signal. It answers in the bytes of Postgres's binary format: text, bytea and arrays of bytea; a
  statement casts all else to text.

Within a transaction, and where each statement begins one, it is the driver's cursor all the same:
after a rollback the driver drops all that is prepared, and what is missing can be prepared anew
only where no transaction fails by it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, LiteralString
from weakref import WeakKeyDictionary, ref

from psycopg import Error, OperationalError, errors, generators
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.statements import statement

Value = str | bytes | int | float | bool | None
Row = Sequence[bytes | None]

_BINARY = 1
_PARAM = re.compile(r"%\((\w+)\)s")
_WITHIN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_GONE = "26000"  # no such prepared statement
_known: WeakKeyDictionary[Connection, dict[str, Prepared]] = WeakKeyDictionary()


class Prepared:
    """One statement of one session; use it from one thread.

    Refers weakly to the driver's connection, which it must not keep alive.

    Args:
        conn: whose statement it is.
        text: with `%(name)s` for each value, whose types are what it makes of them.
    """

    def __init__(self, conn: Connection, text: LiteralString) -> None:
        self._conn = ref(conn)
        self._pgconn = conn.pgconn
        self._text = text
        self._name, self._query, self._names = _numbered(text)
        self._loaders = Transformer()
        self._prepared = False

    def rows(self, values: Mapping[str, Value]) -> list[tuple[Any, ...]]:
        """Run it, not to be interrupted; its rows.

        Raises:
            psycopg.Error: as of any statement.
        """
        if (conn := self._cursors()) is not None:
            return conn.cursor(binary=True).execute(self._text, self._texts(values)).fetchall()
        result = self._run(self._pgconn.prepare, self._pgconn.exec_prepared, values)
        self._loaders.set_pgresult(result)
        return self._loaders.load_rows(0, result.ntuples, tuple)

    def raw(self, values: Mapping[str, Value]) -> Row:
        """Run one that answers with one row; its values as they came.

        Raises:
            psycopg.Error: as of any statement.
        """
        if (conn := self._cursors()) is not None:
            result = conn.cursor(binary=True).execute(self._text, self._texts(values)).pgresult
        else:
            pgconn = self._pgconn
            result = self._run(
                lambda *sent: self._awaited(pgconn.send_prepare, *sent),
                lambda *sent: self._awaited(pgconn.send_query_prepared, *sent),
                values,
            )
        return [result.get_value(0, column) for column in range(result.nfields)] if result else []

    def _cursors(self) -> Connection | None:
        """The connection, where the driver's cursor has to do it."""
        conn = self._conn()
        within = self._pgconn.transaction_status in _WITHIN
        return conn if conn is not None and (within or not conn.autocommit) else None

    def _texts(self, values: Mapping[str, Value]) -> dict[str, str | None]:
        return {name: _text(values[name]) for name in self._names}

    def _run(
        self,
        prepare: Callable[[bytes, bytes], Any],
        run: Callable[..., Any],
        values: Mapping[str, Value],
    ) -> Any:
        if not self._prepared:
            self._prepared = True  # if it is not, for this is interrupted or fails: see below
            self._checked(prepare(self._name, self._query))
        params = [None if (v := _text(values[n])) is None else v.encode() for n in self._names]
        result = run(self._name, params, None, _BINARY)
        if result.status != ExecStatus.TUPLES_OK:
            if _error(result).sqlstate != _GONE:
                self._checked(result)
            self._prepared = False  # or somebody dropped all that was prepared
            return self._run(prepare, run, values)
        return result

    def _awaited(self, send: Callable[..., None], *sent: Any) -> Any:
        """What comes of something sent, waited for as the driver's cursors do."""
        conn = self._conn()
        if conn is None:
            raise OperationalError("the connection is closed")
        with conn.lock:
            send(*sent)
            return conn.wait(generators.execute(self._pgconn))[-1]

    def _checked(self, result: Any) -> None:
        if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return
        error = _error(result)
        if error.sqlstate is None and self._pgconn.status == ConnStatus.BAD:
            raise OperationalError(str(error))
        raise error


def prepared(conn: Connection, name: str) -> Prepared:
    """A statement of a session, by its name; see shared.postgres.driver.statements."""
    known = _known.get(conn)
    if known is None:
        known = _known[conn] = {}
    found = known.get(name)
    if found is None:
        found = known[name] = Prepared(conn, statement(name))
    return found


def as_array(items: Iterable[object]) -> str:
    """An array as Postgres reads it: of numbers, or of names in quotes that need no escape."""
    return "{" + ",".join(map(str, items)) + "}"


def as_texts(items: Iterable[str | None]) -> str:
    """An array of any texts as Postgres reads it."""
    return as_array("NULL" if item is None else _quoted(item) for item in items)


def pieces(array: bytes) -> list[bytes]:
    """The elements of an array of bytea, as `raw` answers it: none null, in one dimension."""
    found: list[bytes] = []
    place = 20  # behind: dimensions, whether there are nulls, type, length, first index
    while place < len(array):
        begin = place + 4
        place = begin + int.from_bytes(array[place:begin], "big")
        found.append(array[begin:place])
    return found


@cache
def _numbered(text: str) -> tuple[bytes, bytes, Sequence[str]]:
    """(What it is prepared as, the text with $1 …, names of the values in order)."""
    names = list(dict.fromkeys(_PARAM.findall(text)))
    query = _PARAM.sub(lambda found: f"${names.index(found[1]) + 1}", text).encode()
    return b"weirkeeper_" + hashlib.sha256(query).hexdigest()[:16].encode(), query, names


def _text(value: Value) -> str | None:
    """A value as Postgres reads it."""
    if value is None or isinstance(value, str):
        return value
    return "\\x" + value.hex() if isinstance(value, bytes) else str(value)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _error(result: Any) -> Error:
    return errors.error_from_result(result, encoding="utf-8")
