"""Events as a child hands them to a handler."""

from __future__ import annotations

from typing import Any

from shared.events.event import Event
from shared.postgres.driver.statements import statement


def load_event(conn: Any, event_id: str) -> Event:
    """An event by its id."""
    row = conn.execute(statement("events/load"), {"event_id": event_id}).fetchone()
    assert row is not None, event_id
    return Event(*row)
