"""What every look has: a bound on its time, one moment that it sees, and times as texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from psycopg.pq import TransactionStatus

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement


@contextmanager
def bounded(conn: Connection) -> Iterator[None]:
    """Look within one transaction, whose statements end after 2 s each and see one moment.

    Args:
        conn: in autocommit mode; within a look, this is a part of it.

    Raises:
        DatabaseUnavailable: not now, or it took too long.
    """
    within = conn.info.transaction_status != TransactionStatus.IDLE
    with translated(), conn.transaction():
        if not within:
            conn.execute(statement("inspector/moment"))
        conn.execute(statement("inspector/bound"))
        yield


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 text in UTC, to the millisecond."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")
