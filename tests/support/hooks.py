"""Endpoints and their deliveries for tests: rules that let 127.0.0.1 be called, and looks at rows."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from psycopg.rows import dict_row

from shared.app import load_app
from shared.config.env import Environment
from shared.config.outbound import read_outbound
from shared.jobs.outcomes import Completed
from shared.postgres.driver.connect import connect
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.queues.catalog import declare
from shared.postgres.webhooks.deliveries import PostgresDeliveries, Report
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from shared.postgres.webhooks.retention import end_lost
from shared.webhooks.endpoint import Draft
from shared.webhooks.policy import Policy
from shared.webhooks.port import Lease
from shared.webhooks.rules import Rules, rules_of
from shared.webhooks.sealing import Sealer
from shared.webhooks.times import LEASE
from tests.support.handling import load_event
from workers.handlers.webhook import webhook_fanout

SECRET = "a secret of the tests long enough to be one"
LOCAL = {
    "WEIRKEEPER_SECRET": SECRET,
    "WEIRKEEPER_OUTBOUND_HTTP": "yes",
    "WEIRKEEPER_OUTBOUND_ALLOW": "127.0.0.1",
}


def rules() -> Rules:
    """Rules of an installation that may call this machine."""
    return rules_of(Policy(read_outbound(Environment(LOCAL))), Sealer([SECRET]))


class Hooks:
    """The store of endpoints on one database, and what lies in it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.conn = connect(url, "hooks")
        declare(self.conn, load_app(None))
        self.webhooks = PostgresWebhooks(self.conn, rules())
        self.deliveries = PostgresDeliveries(self.conn)

    def close(self) -> None:
        """End the session."""
        self.conn.close()

    def endpoint(self, owner: str = "me", url: str = "http://127.0.0.1:9/", **fields: Any) -> str:
        """Add an endpoint; return its id."""
        fields.setdefault("event_types", ("corpus.*",))
        return self.webhooks.create(owner, Draft(url=url, **fields)).id

    def event(self, owner: str | None = "me", data: dict[str, Any] | None = None) -> str:
        """Record an event; return its id."""
        recorder = PostgresRecorder(self.conn)
        return recorder.record(
            "corpus.note.changed", owner_id=owner, subject="wiki://a", data=data or {"n": 1}
        )

    def fan_out(self, event_id: str) -> int:
        """Fan an event out as its handler does; return how many deliveries are new."""
        event = load_event(self.conn, event_id)
        done = webhook_fanout.handle(Handling(self.conn), {}, event)
        assert isinstance(done, Completed)
        return int(done.result["deliveries"])

    def rows(self, text: str, *params: Any) -> list[dict[str, Any]]:
        """What a query finds."""
        with self.conn.cursor(row_factory=dict_row) as cursor:
            return list(cursor.execute(text, params))  # type: ignore[arg-type]

    def delivery(self, endpoint_id: str) -> dict[str, Any]:
        """The newest delivery of an endpoint."""
        return self.rows(
            "select * from weirkeeper.delivery where endpoint_id = %s order by id desc", endpoint_id
        )[0]

    def leased(self, delivery_id: int) -> Lease:
        """Its lease, which must be free."""
        granted = self.deliveries.lease(delivery_id, LEASE)
        assert isinstance(granted, Lease), granted
        return granted

    def end_lost(self) -> int:
        """Have deliveries end whose jobs did without them; how many."""
        return sum(end_lost(self.conn, 2))

    def opens(self, endpoint_id: str) -> Any:
        """From when on deliveries of an endpoint may be claimed, as text."""
        [row] = self.rows(
            "select open_at::text from weirkeeper.key where name = %s", f"webhook:{endpoint_id}"
        )
        return row["open_at"]


class Handling:
    """A handler's context, as far as these use it."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    def connection(self, pristine: bool = False) -> Any:
        """The connection."""
        return nullcontext(self._conn)


def answered(**fields: Any) -> Report:
    """A report; delivered, unless something else is said."""
    given = {
        "result": "delivered", "code": "ok", "delay": None, "pause": None, "disable": None,
        "url": "http://127.0.0.1:9/", "started_at": 1_700_000_000.0, "status": 200,
    }  # fmt: skip
    return Report(**{**given, **fields})
