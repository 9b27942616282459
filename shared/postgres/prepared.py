"""A statement that is prepared once a session and answered in raw values: what a child asks most.

Beneath shared.postgres.deliveries. The driver makes a cursor and looks up how to read and write
each value, each time: two statements of 30 values cost a child more than all else that it does
between requests. Here values go out as text and come back as Postgres's binary format has them:
text, bytea and arrays of bytea; a statement casts all else to text. Waits, and is interrupted, as
the driver's own cursors do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from typing import Any, LiteralString
from weakref import WeakKeyDictionary

from psycopg import errors, generators
from psycopg.pq import ExecStatus, TransactionStatus

from shared.postgres.connect import Connection

Value = str | bytes | int | float | bool | None
Row = Sequence[bytes | None]

_BINARY = 1
_PARAM = re.compile(r"%\((\w+)\)s")
_known: WeakKeyDictionary[Connection, set[bytes]] = WeakKeyDictionary()


def ask(conn: Connection, text: LiteralString, values: Mapping[str, Value]) -> Row:
    """Run a statement that answers with one row.

    Args:
        conn: in autocommit mode, or in a transaction.
        text: with `%(name)s` for each value.
        values: by name; their types are what the statement makes of them.

    Raises:
        psycopg.Error: as of any statement.
    """
    name, query, names = numbered(text)
    params = [_raw(values[each]) for each in names]
    with conn.lock:
        try:
            return conn.wait(_asked(conn, name, query, params))
        except errors.InvalidSqlStatementName:  # somebody dropped all that was prepared
            _known.pop(conn, None)
            if conn.info.transaction_status is not TransactionStatus.IDLE:
                raise
            return conn.wait(_asked(conn, name, query, params))


def pieces(array: bytes) -> list[bytes]:
    """The elements of an array of bytea, none of them null, in one dimension."""
    found: list[bytes] = []
    place = 20  # behind: dimensions, whether there are nulls, type, length, first index
    while place < len(array):
        begin = place + 4
        place = begin + int.from_bytes(array[place:begin], "big")
        found.append(array[begin:place])
    return found


def _asked(
    conn: Connection, name: bytes, query: bytes, params: Sequence[bytes | None]
) -> Generator[Any, Any, Row]:
    pgconn, known = conn.pgconn, _known.setdefault(conn, set())
    if name not in known:
        pgconn.send_prepare(name, query)
        yield from _answered(conn)
        known.add(name)
    pgconn.send_query_prepared(name, params, result_format=_BINARY)
    result = yield from _answered(conn)
    return [result.get_value(0, column) for column in range(result.nfields)]


def _answered(conn: Connection) -> Generator[Any, Any, Any]:
    *_, result = yield from generators.execute(conn.pgconn)
    if result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        raise errors.error_from_result(result, encoding=conn.info.encoding)
    return result


@cache
def numbered(text: str) -> tuple[bytes, bytes, Sequence[str]]:
    """(What it is prepared as, the text with $1 …, names of the values in order)."""
    names = list(dict.fromkeys(_PARAM.findall(text)))
    query = _PARAM.sub(lambda found: f"${names.index(found[1]) + 1}", text).encode()
    return b"weirkeeper_" + hashlib.sha256(query).hexdigest()[:16].encode(), query, names


def _raw(value: Value) -> bytes | None:
    if value is None:
        return None
    return b"\\x" + value.hex().encode() if isinstance(value, bytes) else str(value).encode()
