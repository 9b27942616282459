"""Finding events by a filter, without ever reading far at once.

Part of shared.postgres.events.log. The log has no index that a record would have to pay for: pages
come from the relay's own tables, in the order in which it worked. First what is in line, then what
failed, then what was fanned out; each in windows, so that a statement looks at few rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, LiteralString

from shared.errors import InvalidArguments
from shared.events.log import FAILING, FANNED_OUT, PENDING, POISONED, STATES, Filter, Recorded
from shared.notices.channels import is_event_id
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.looks import bounded, iso
from shared.postgres.driver.statements import statement

WINDOW = 5000  # events that one statement looks at
FAR = 100  # windows that a list looks through
_SECTIONS = ((PENDING,), (FAILING, POISONED), (FANNED_OUT,))
_LAST_SEQ, _LAST_ID, _LAST_MOMENT = 2**63 - 1, "f" * 32, "infinity"


class EventPages:
    """Events, page by page.

    Args:
        conn: in autocommit mode.
    """

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def of(self, wanted: Filter, limit: int, before: str | None) -> list[Recorded]:
        """One page; see shared.events.log.EventLog.list."""
        if wanted.state is not None and wanted.state not in STATES:
            raise InvalidArguments(
                f"state: expected one of {', '.join(STATES)}; got {wanted.state!r}"
            )
        first, place = (0, None) if before is None else self._place(before)
        found: list[Recorded] = []
        looks = 0
        for section in range(first, len(_SECTIONS)):
            if wanted.state is not None and wanted.state not in _SECTIONS[section]:
                continue
            for rows in self._windows(section, place if section == first else None, wanted, limit):
                found += rows
                looks += 1
                if len(found) >= limit or looks >= FAR:
                    return found[:limit]
        return found

    def _windows(
        self, section: int, place: Mapping[str, Any] | None, wanted: Filter, limit: int
    ) -> Iterator[list[Recorded]]:
        params = {
            "types": None if wanted.types is None else list(wanted.types),
            "subject": wanted.subject,
            "owner_id": wanted.owner_id,
            "poisoned": None if wanted.state is None else wanted.state == POISONED,
            "limit": limit,
            "window": WINDOW,
            "at": _LAST_MOMENT,
            "below": _LAST_SEQ if section == 0 else _LAST_ID,
            **(place or {}),
        }
        edge: str | None = ""
        while edge is not None:
            rows, edge = self._look(_text(section), params)
            yield rows
            if edge is not None:
                params.update(self._behind(section, edge))

    def _look(
        self, text: LiteralString, params: Mapping[str, Any]
    ) -> tuple[list[Recorded], str | None]:
        with bounded(self._conn):
            rows: Sequence[Any] = self._conn.execute(text, params).fetchall()
        return [_recorded(row) for row in rows if row[0] is not None], rows[0][-1]

    def _behind(self, section: int, edge: str) -> Mapping[str, Any]:
        """Where the next window begins: a number of the line, or an event."""
        return {"below": int(edge)} if section == 0 else self._place(edge)[1]

    def _place(self, event_id: str) -> tuple[int, Mapping[str, Any]]:
        """In which section an event stands, and where.

        Raises:
            InvalidArguments: no such event.
        """
        row: Any = None
        if is_event_id(event_id):
            with bounded(self._conn):
                row = self._conn.execute(statement("events/place"), {"id": event_id}).fetchone()
        if row is None:
            raise InvalidArguments(f"before: expected the id of an event; got {event_id[:40]!r}")
        seq, failed, fanned_out_at = row
        if failed:
            return 1, {"below": event_id}
        if fanned_out_at is not None:
            return 2, {"below": event_id, "at": fanned_out_at}
        return 0, {"below": _LAST_SEQ if seq is None else seq}


def _text(section: int) -> LiteralString:
    if section == 0:
        return statement("events/page_pending")
    if section == 1:
        return statement("events/page_failed")
    return statement("events/page_fanned")


def _recorded(row: Any) -> Recorded:
    event_id, event_type, owner_id, subject, occurred_at, state, failures, _ = row
    return Recorded(
        event_id, event_type, owner_id, subject, iso(occurred_at) or "", state, failures
    )
