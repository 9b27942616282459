"""ADAPTER of the port EventLog: what people and programs see of events, and how they step in.

Pages are found by `pages`, replays done by `replays`; here they meet the port.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import Conflict, NotFound
from shared.events.log import FANNED_OUT, PENDING, Delivery, Filter, Recorded, Replay, Span, Type
from shared.notices.channels import is_event_id
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.looks import bounded, iso
from shared.postgres.driver.statements import statement
from shared.postgres.events import replays
from shared.postgres.events.pages import EventPages


class PostgresEventLog:
    """The log, through one connection in autocommit mode; for one thread."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._pages = EventPages(conn)

    def list(
        self, wanted: Filter, *, limit: int = 50, before: str | None = None
    ) -> Sequence[Recorded]:
        """One page; see shared.events.log.EventLog.list."""
        return self._pages.of(wanted, limit, before)

    def get(self, event_id: str) -> Recorded:
        """One event with everything; see shared.events.log.EventLog.get."""
        event_id = event_id.lower()
        if not is_event_id(event_id):
            raise _unknown(event_id)
        with bounded(self._conn):
            row: Any = self._conn.execute(statement("events/get"), {"id": event_id}).fetchone()
            got: Sequence[Any] = self._conn.execute(
                statement("events/deliveries"), {"id": event_id}
            ).fetchall()
        if row is None:
            raise _unknown(event_id)
        return _whole(row, got)

    def requeue(self, event_id: str) -> str:
        """Have the relay try again; see shared.events.log.EventLog.requeue."""
        state = self.get(event_id).state
        if state == PENDING or self._requeue([event_id]):
            return PENDING if state == PENDING else self.get(event_id).state
        raise Conflict(
            f"requeue of event {event_id}: expected one whose fan-out failed; got one that was "
            f"{FANNED_OUT.replace('_', ' ')}; replay it"
        )

    def requeue_poisoned(self) -> int:
        """Requeue every poisoned event; how many."""
        return self._requeue(None)

    def skip(self, event_id: str) -> None:
        """Give up an event; see shared.events.log.EventLog.skip."""
        state = self.get(event_id).state
        with translated():
            row: Any = self._conn.execute(statement("events/skip"), {"id": event_id}).fetchone()
        if not row[0]:
            raise Conflict(
                f"skip of event {event_id}: expected one whose fan-out failed; got one that is "
                f"{state.replace('_', ' ')}; nothing to give up"
            )

    def types(self) -> Sequence[Type]:
        """Every declared type, by name."""
        with bounded(self._conn):
            rows: Sequence[Any] = self._conn.execute(statement("events/types")).fetchall()
        return [Type(*row) for row in rows]

    def last(self, count: int) -> Mapping[str, int]:
        """How many of the last were of each type; see shared.events.log.EventLog.last."""
        with bounded(self._conn):
            rows: Sequence[Any] = self._conn.execute(
                statement("events/last"), {"count": count}
            ).fetchall()
        return dict(rows)

    def plan(self, span: Span) -> int:
        """How many events a replay would deliver; see shared.events.log.EventLog.plan."""
        return replays.plan(self._conn, span)

    def replay(self, span: Span, planned: int, asked_by: str) -> Replay:
        """Begin a replay; see shared.events.log.EventLog.replay."""
        return replays.start(self._conn, span, planned, asked_by)

    def replays(self, limit: int) -> Sequence[Replay]:
        """The last replays, newest first."""
        return replays.listed(self._conn, limit)

    def replay_status(self, replay_id: str) -> Replay:
        """One replay; see shared.events.log.EventLog.replay_status."""
        return replays.status(self._conn, replay_id)

    def cancel_replay(self, replay_id: str) -> Replay:
        """Deliver no more of it; see shared.events.log.EventLog.cancel_replay."""
        return replays.cancel(self._conn, replay_id)

    def _requeue(self, ids: Sequence[str] | None) -> int:
        params = {"ids": None if ids is None else [*ids]}
        with translated():
            return len(self._conn.execute(statement("events/requeue"), params).fetchall())


def _unknown(event_id: str) -> NotFound:
    return NotFound(f"event: expected the id of one that is kept; got {event_id[:40]!r}")


def _whole(row: Any, got: Sequence[Any]) -> Recorded:
    """A row of events/get with those of events/deliveries."""
    event_id, event_type, owner_id, subject, occurred_at, state, failures, *rest = row
    data, trace, error, next_try_at, fanned_out_at = rest
    return Recorded(
        id=event_id,
        type=event_type,
        owner_id=owner_id,
        subject=subject,
        occurred_at=iso(occurred_at) or "",
        state=state,
        failures=failures,
        data=data,
        trace=trace,
        last_error=error,
        next_try_at=iso(next_try_at),
        fanned_out_at=iso(fanned_out_at),
        deliveries=tuple(Delivery(*one) for one in got),
    )
