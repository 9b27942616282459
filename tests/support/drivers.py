"""For each subscription of the reference site: how its event comes about, and what its handler does.

A driver brings one event about on a real database, and says what can be observed of the handler's
work. tests/integration/test_idempotency.py delivers the event twice through it. A new subscription
needs a driver here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from shared.postgres.connect import Connection
from shared.postgres.notes import PostgresNotes
from shared.postgres.recorder import PostgresRecorder
from shared.postgres.webhooks import PostgresWebhooks
from shared.webhooks.endpoint import Draft
from tests.support.hooks import rules


class Driver(Protocol):
    """One subscription's."""

    def happen(self, conn: Connection) -> str:
        """Do what records the event; return its id."""
        ...

    def observe(self, conn: Connection) -> object:
        """Everything that the handler's work can be seen by; equal = nothing has changed."""
        ...


class CorpusIndex:
    """A note is written; the search index has it."""

    def happen(self, conn: Connection) -> str:
        fields = {"title": "Weir", "body": "what a weirkeeper keeps", "tags": ["water"]}
        return PostgresNotes(conn).create("me", fields).event_id

    def observe(self, conn: Connection) -> object:
        documents = conn.execute(
            "select d.*, d.xmin::text, d.ctid::text from site.document d order by note_id"
        ).fetchall()
        terms = conn.execute("select t.*, t.xmin::text from site.term t order by term").fetchall()
        return documents, terms


class WebhookFanout:
    """An owner with two endpoints does something; each has one delivery and one job of it."""

    def happen(self, conn: Connection) -> str:
        webhooks = PostgresWebhooks(conn, rules())
        for pattern in ("writing.*", "*"):
            webhooks.create("me", Draft("https://hooks.example.org/", (pattern,)))
        recorder = PostgresRecorder(conn)
        return recorder.record("writing.published", owner_id="me", subject="writing://weir")

    def observe(self, conn: Connection) -> object:
        deliveries = conn.execute(
            "select d.*, d.xmin::text from weirkeeper.delivery d order by id"
        ).fetchall()
        jobs = conn.execute(
            "select id from weirkeeper.job where kind = 'webhook.deliver' order by id"
        ).fetchall()
        return deliveries, jobs


DRIVERS: Mapping[str, Driver] = {
    "corpus.index": CorpusIndex(),
    "webhook.fanout": WebhookFanout(),
}


def without_driver(subscriptions: Any, drivers: Mapping[str, object] = DRIVERS) -> set[str]:
    """Names of subscriptions that nobody can drive, and of drivers without a subscription."""
    return {s.name for s in subscriptions} ^ set(drivers)
