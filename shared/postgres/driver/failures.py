"""The one seam where psycopg's errors become ours.

Every adapter method runs under `translated()`. What trying again can mend is `transient`; the job
layer and the services' loops decide by that flag alone.
"""

from __future__ import annotations

import re
from types import TracebackType

import psycopg

from shared.errors import (
    Conflict,
    DatabaseRefused,
    DatabaseUnavailable,
    InvalidArguments,
    NotFound,
    UnknownEventType,
    UnknownKind,
    ValuesRefused,
    WeirkeeperError,
)

# SQLSTATEs of our own functions (docs/sql_contract.md).
_OURS: dict[str, type[WeirkeeperError]] = {
    "WK001": UnknownKind,
    "WK002": InvalidArguments,
    "WK003": UnknownEventType,
    "WK004": InvalidArguments,
    "WK005": Conflict,
    "WK006": NotFound,
    "WK007": Conflict,
}
# Classes that pass: connection, transaction rollback, resources, operator intervention; and
# lock_not_available, read_only_sql_transaction (a standby after failover).
_PASSING_CLASSES = ("08", "40", "53", "57")
_PASSING = ("55P03", "25006", "25P03")
# Classes that no row is to blame for: the statement, the schema, rights, the server itself. All
# others do blame a row, those that a trigger makes up with RAISE included.
_BLAMELESS_CLASSES = ("0A", "25", "26", "28", "3D", "3F", "42", "58", "F0", "XX")

# A refused connection carries no SQLSTATE; the words are the server's own, in English.
_NOT_YET = (
    "starting up",
    "shutting down",
    "not yet accepting connections",
    "in recovery mode",
    "too many clients",
    "too many connections",
    "remaining connection slots",
    "terminating connection",
)
_NO_DATABASE = re.compile(r'database "[^"]*" does not exist')


def is_transient(error: psycopg.Error) -> bool:
    """Say whether trying the same again later can succeed."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return state[:2] in _PASSING_CLASSES or state in _PASSING


def is_away(error: WeirkeeperError) -> bool:
    """Say whether a connection failed because no server answers, or not yet.

    A server that answers and will not have us (password, database, role) says FATAL.
    """
    if not isinstance(error, DatabaseUnavailable):
        return False
    said = str(error)
    return "FATAL:" not in said or any(word in said for word in _NOT_YET)


def translate(error: psycopg.Error) -> WeirkeeperError:
    """Our error for one of psycopg's."""
    state = error.sqlstate or ""
    message = " ".join((error.diag.message_primary or str(error)).split())
    if state in _OURS:
        return _OURS[state](message)
    label = f"{message} (SQLSTATE {state})" if state else message
    if _NO_DATABASE.search(label):
        label += "; create the database (createdb NAME), or correct the URL"
    if is_transient(error):
        return DatabaseUnavailable(label)
    return DatabaseRefused(label) if state[:2] in _BLAMELESS_CLASSES else ValuesRefused(label)


class translated:  # noqa: N801 - read as a word: `with translated():`
    """Run adapter code; raise ours from psycopg's errors.

    No generator: it stands around every statement, and would cost more than the values do.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Raise ours from psycopg's."""
        if isinstance(error, psycopg.Error):
            ours = translate(error)
            ours.sqlstate = error.sqlstate or ""
            raise ours from error
