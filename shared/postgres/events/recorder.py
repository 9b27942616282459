"""ADAPTER of the port Recorder: the SQL function `weirkeeper.record_event`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString, Self

import psycopg

from shared.events.checks import checked_data
from shared.jobs.trace import carried
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement


def record_text() -> LiteralString:
    """The one statement, of both adapters; read at the first use."""
    return statement("events/record")


class PostgresRecorder:
    """Records through one connection; the caller owns its transaction."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._conn = conn

    def with_tx(self, conn: psycopg.Connection[Any]) -> Self:
        """Return one that writes through `conn`; this one is left as it is."""
        return type(self)(conn)

    def record(
        self,
        event_type: str,
        *,
        owner_id: str | None = None,
        subject: str = "",
        data: Mapping[str, Any] | None = None,
        trace: str | None = None,
    ) -> str:
        """Record an event; see shared.events.port.Recorder.record."""
        params = parameters(event_type, owner_id, subject, data, trace)
        with translated(), self._conn.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            row = cursor.execute(record_text(), params).fetchone()
            return str(row[0]) if row else ""


def parameters(
    event_type: str,
    owner_id: str | None,
    subject: str,
    data: Mapping[str, Any] | None,
    trace: str | None,
) -> dict[str, Any]:
    """Check what Python can see, before it could abort the caller's transaction; of RECORD.

    Raises:
        InvalidArguments: data that cannot be stored.
    """
    return {
        "type": event_type,
        "owner_id": owner_id,
        "subject": subject,
        "data": checked_data(event_type, owner_id, subject, data, trace),
        "trace": carried(trace),
    }
