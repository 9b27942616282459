"""ADAPTER of the port Webhooks: the log of deliveries, and sending one once more.

Used by shared.postgres.webhooks.endpoints, which is the whole port. Every statement names the
owner, and is bounded: a session keeps plans that were made while there were few deliveries.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from shared.errors import InvalidArguments, NotFound
from shared.events.globs import matches
from shared.postgres.driver.failures import translated
from shared.postgres.driver.looks import bounded
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.postgres.webhooks.ids import number
from shared.postgres.webhooks.rows import (
    NONE,
    Rows,
    attempt,
    delivery,
    missed,
    position,
    told,
)
from shared.webhooks import explanation
from shared.webhooks.records import Attempt, Delivery, Missed, Told

STATES = ("pending", "delivered", "failed", "cancelled")
MAX_PAGE = 500
NO_BODY = b""  # a delivery that is there has one
FIRST = 1  # priority of what was asked for by hand


class PostgresWebhookLog(Rows):
    """Reads the log, and restarts what is in it."""

    def deliveries(
        self,
        owner_id: str,
        endpoint_id: str,
        *,
        state: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Delivery]:
        """Deliveries of an endpoint, newest events first."""
        if state is not None and state not in STATES:
            raise InvalidArguments(f"state: expected one of {', '.join(STATES)}; got {state!r}")
        params = {
            "id": number(endpoint_id),
            "owner_id": owner_id,
            "state": state,
            "before": None if before is None else position("before", before),
            "limit": _page(limit),
        }
        with bounded(self._conn):
            return [delivery(row) for row in self._all("deliveries/page", params)]

    def attempts(self, owner_id: str, delivery_id: str) -> list[Attempt]:
        """What was sent and answered."""
        params = {"id": number(delivery_id), "owner_id": owner_id}
        with bounded(self._conn):
            self._having(owner_id, delivery_id, None)
            return [attempt(row) for row in self._all("deliveries/attempts", params)]

    def missed(self, owner_id: str, endpoint_id: str, after: str, limit: int = 50) -> list[Missed]:
        """Events of an endpoint after a number, oldest first."""
        params = {
            "id": number(endpoint_id),
            "owner_id": owner_id,
            "after": position("after", after),
            "limit": _page(limit),
        }
        with bounded(self._conn):
            return [missed(row) for row in self._all("deliveries/after", params)]

    def explain(self, owner_id: str, endpoint_id: str, event_id: str) -> Told:
        """How an event stands with an endpoint."""
        params = {"id": number(endpoint_id), "owner_id": owner_id, "event_id": uuid(event_id)}
        with bounded(self._conn):
            row = self._one("deliveries/explain", params)
        if row is None:
            raise NotFound(
                f"endpoint: expected the id of one of yours; got {endpoint_id[:40]!r}; {NONE}"
            )
        values = [told(value) for value in row]
        event_type, patterns = values[0], values[5]
        wanted = event_type is not None and any(matches(one, event_type) for one in patterns)
        values.insert(6, wanted)
        return explanation.explain(explanation.Facts(*values))

    def redeliver(
        self, owner_id: str, *, delivery_id: str | None = None, event_id: str | None = None
    ) -> list[str]:
        """Send a delivery, or all of an event, once more."""
        if (delivery_id is None) == (event_id is None):
            raise InvalidArguments("redeliver: expected a delivery or an event; give one of them")
        with bounded(self._conn):
            found = self._having(owner_id, delivery_id, event_id)
        with translated(), self._conn.transaction():
            deliveries = PostgresDeliveries(self._conn)
            started = [
                deliveries.add(int(endpoint_id), event, NO_BODY, "manual", FIRST)
                for _, endpoint_id, event, _ in found
            ]
        return [one for one in started if one is not None]

    def _having(self, owner_id: str, delivery_id: str | None, event_id: str | None) -> list[Any]:
        """Rows of a delivery, or of all of an event.

        Raises:
            NotFound: there is none.
        """
        if delivery_id is not None:
            params = {"owner_id": owner_id, "id": number(delivery_id)}
            found = self._all("deliveries/get", params)
            expected, got = "delivery: expected the id of one of yours", delivery_id[:40]
        else:
            event = uuid(str(event_id))
            found = self._all("deliveries/of_event", {"owner_id": owner_id, "event_id": event})
            expected = "event: expected the id of one that was sent to an endpoint of yours"
            got = str(event_id)
        if found:
            return found
        raise NotFound(f"{expected}; got {got!r}; {NONE}")


def uuid(given: str) -> str:
    """An event's id as the database has it.

    Raises:
        NotFound: it cannot be one.
    """
    try:
        return str(UUID(given))
    except ValueError:
        raise NotFound(
            f"event: expected the id of one of yours; got {given[:40]!r}; {NONE}"
        ) from None


def _page(limit: int) -> int:
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidArguments(f"limit: expected 1 to {MAX_PAGE}; got {limit}")
    return limit
