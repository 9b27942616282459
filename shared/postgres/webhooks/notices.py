"""ADAPTER: whom a notice about an endpoint is for. Read by the handler of `webhook.notice`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.webhooks.ids import number


@dataclass(frozen=True, slots=True)
class Notified:
    """An endpoint whose contact is told something.

    Attributes:
        id, url: of the endpoint.
        contact: who is told; None = nobody.
    """

    id: str
    url: str
    contact: str | None

    @property
    def host(self) -> str:
        """Where it stands."""
        return urlsplit(self.url).hostname or ""

    @property
    def place(self) -> str:
        """Its URL without the query, which may hold a token."""
        return self.url.partition("?")[0]


def notified(conn: Connection, owner_id: str, endpoint_id: str) -> Notified | None:
    """An endpoint of an owner; None = it was removed."""
    params = {"owner_id": owner_id, "id": number(endpoint_id)}
    with translated():
        row: Any = conn.execute(statement("endpoints/notified"), params).fetchone()
    return None if row is None else Notified(*row)
