"""ADAPTER of the port Recorder, in memory: a committed event becomes its subscribers' jobs."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self
from uuid import UUID

from shared.errors import UnknownEventType
from shared.events.checks import checked_data
from shared.events.event import Event
from shared.jobs.trace import carried
from shared.memory.rows import iso
from shared.memory.store import Store
from shared.memory.transaction import MemoryTransaction


class MemoryRecorder:
    """Records into a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tx: MemoryTransaction | None = None

    def with_tx(self, conn: Any) -> Self:
        """Return one that records within `conn`, as MemoryRuntime.with_tx does."""
        bound = copy.copy(self)
        bound._tx = conn if isinstance(conn, MemoryTransaction) else None  # noqa: SLF001  (ours)
        return bound

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
        text = checked_data(event_type, owner_id, subject, data, trace)
        if all(declared.name != event_type for declared in self._store.app.event_types):
            raise UnknownEventType(
                f"event type: expected a declared type; got {event_type!r}; "
                "declare it in the application"
            )
        with self._store.lock, ExitStack() as stack:
            tx = self._tx or stack.enter_context(MemoryTransaction(self._store))
            occurred_at = iso(self._store.clock.wall())
            event_id = str(UUID(int=self._store.next_event()))
            event = Event(event_id, event_type, owner_id, subject, json.loads(text), occurred_at)
            tx.keep_event(event, carried(trace))
            return event_id
