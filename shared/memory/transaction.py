"""A transaction of the memory adapter: what is enqueued or recorded in it exists iff it commits."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from shared.errors import Conflict
from shared.events.event import Event
from shared.jobs.kinds import Kind
from shared.jobs.options import EnqueueOpts
from shared.memory.fanout import fan_out
from shared.memory.rows import UNCOMMITTED, Row
from shared.memory.store import Store


class MemoryTransaction:
    """A `with` block: it commits at the end, and rolls back on an exception.

    Stands in for the connection that an application hands to `with_tx`.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[Row] = []
        self._events: list[tuple[Event, str | None]] = []
        self._open = True

    def add(self, kind: Kind, text: str, opts: EnqueueOpts) -> str:
        """Make a new job part of it; the id of that, or of the one that keeps it out.

        Raises:
            Conflict: what keeps it out is part of another open transaction, or this one has ended.
        """
        self._check_open()
        row, new = self._store.add(kind, text, opts)
        if new:
            self._rows.append(row)
        elif row.where == UNCOMMITTED and row not in self._rows:
            raise Conflict(
                f"unique job of kind {kind.name}: expected no other open transaction that "
                f"enqueues it; job {row.id} is part of one; end that first",
                str(row.id),
            )
        return str(row.id)

    def keep_event(self, event: Event, trace: str | None) -> None:
        """Make an event part of it."""
        self._check_open()
        self._events.append((event, trace))

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._store.lock:
            self._open = False
            for row in self._rows:
                if error is None:
                    self._store.place(row)
                else:
                    self._store.forget(row)
            if error is None:
                fan_out(self._store, self._events)

    def _check_open(self) -> None:
        if not self._open:
            raise Conflict("transaction: expected an open one; got one that has ended; begin anew")
