"""Rows of the webhook tables as the records of shared.webhooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from shared.errors import InvalidArguments
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.webhooks.ids import number
from shared.webhooks.headers import masked
from shared.webhooks.records import Attempt, Delivery, Endpoint, Missed, Replay

NONE = "there is none"


class Rows:
    """Runs statements by name through one connection."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def event_types(self) -> list[tuple[str, str]]:
        """Types that may be sent: (name, description), by name."""
        with translated():
            return [(name, text) for name, text in self._all("endpoints/event_types", {})]

    def _one(self, name: str, params: Mapping[str, Any]) -> Any:
        return self._conn.execute(statement(name), params).fetchone()

    def _all(self, name: str, params: Mapping[str, Any]) -> list[Any]:
        return self._conn.execute(statement(name), params).fetchall()

    def _run(self, name: str, params: Mapping[str, Any]) -> int:
        """How many rows it wrote."""
        return self._conn.execute(statement(name), params).rowcount


def position(what: str, given: str) -> int:
    """A place in the outbox's order, where a page begins.

    Raises:
        InvalidArguments: it is no sequence number.
    """
    found = number(given)
    if found < 0:
        raise InvalidArguments(f"{what}: expected a sequence number; got {str(given)[:40]!r}")
    return found


def moment(value: datetime | None) -> str | None:
    """A moment as the port tells it."""
    return None if value is None else value.astimezone(UTC).isoformat()


def endpoint(row: Sequence[Any]) -> Endpoint:
    """A row of endpoints/list."""
    found = Endpoint(*map(told, row))
    found.headers = masked(found.headers)
    return found


def delivery(row: Sequence[Any]) -> Delivery:
    """A row of deliveries/page."""
    return Delivery(*map(told, row))


def attempt(row: Sequence[Any]) -> Attempt:
    """A row of deliveries/attempts."""
    values = [told(value) for value in row]
    if row[10] is not None:
        values[10] = bytes(row[10]).decode("utf-8", "replace")
    return Attempt(*values)


def missed(row: Sequence[Any]) -> Missed:
    """A row of deliveries/after."""
    return Missed(*row)


def replay(row: Sequence[Any]) -> Replay:
    """A row of replays/get."""
    return Replay(*map(told, row))


def told(value: Any) -> Any:
    """A value as the records have it: moments as text."""
    return moment(value) if isinstance(value, datetime) else value
