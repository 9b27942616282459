"""ADAPTER of the port AsyncRecorder: as shared.postgres.events.recorder, for asyncio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import psycopg
from psycopg.rows import tuple_row

from shared.postgres.driver.failures import translated
from shared.postgres.events.recorder import parameters, record_text


class PostgresAsyncRecorder:
    """Records through one asynchronous connection; the caller owns its transaction."""

    def __init__(self, conn: psycopg.AsyncConnection[Any]) -> None:
        self._conn = conn

    def with_tx(self, conn: psycopg.AsyncConnection[Any]) -> Self:
        """Return one that writes through `conn`; this one is left as it is."""
        return type(self)(conn)

    async def record(
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
        with translated():
            async with self._conn.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(record_text(), params)
                row: Any = await cursor.fetchone()
        return str(row[0])
