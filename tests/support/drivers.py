"""For each subscription of the reference site: how its event comes about, and what its handler does.

A driver brings one event about on a real database, and says what can be observed of the handler's
work. tests/integration/test_idempotency.py delivers the event twice through it. A new subscription
needs a driver here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

import pytest

from shared.postgres.driver.connect import Connection
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from shared.webhooks.endpoint import Draft
from tests.support.hooks import rules
from tests.support.mail import MailServer
from workers.handlers.notify import webhook_notice


class Driver(Protocol):
    """One subscription's."""

    def surroundings(self) -> AbstractContextManager[None]:
        """What must be there while it is driven."""
        ...

    def happen(self, conn: Connection) -> str:
        """Do what records the event; return its id."""
        ...

    def observe(self, conn: Connection) -> object:
        """Everything that the handler's work can be seen by; equal = nothing has changed."""
        ...


class Alone:
    """A driver that needs nothing but the database."""

    def surroundings(self) -> AbstractContextManager[None]:
        """Nothing."""
        return nullcontext()


class CorpusIndex(Alone):
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


class WebhookFanout(Alone):
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


class WebhookNotice:
    """An endpoint that answers that it is gone has its contact told: by one letter, by its id."""

    def __init__(self) -> None:
        self.server = MailServer()

    def happen(self, conn: Connection) -> str:
        hooks = PostgresWebhooks(conn, rules())
        draft = Draft("https://hooks.example.org/?canary", ("*",), contact="ann@example.org")
        endpoint = hooks.create("me", draft).id
        return PostgresRecorder(conn).record(
            "webhook.endpoint.disabled",
            owner_id="me",
            subject=f"webhook://{endpoint}",
            data={
                "endpoint_id": endpoint, "reason": "gone", "code": "gone", "status": 410,
                "failures": 1,
            },
        )  # fmt: skip

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """With a mail server to send through."""
        with self.server, pytest.MonkeyPatch.context() as patch:
            patch.setenv("WEIRKEEPER_SMTP_URL", f"smtp://{self.server.at}?tls=none")
            patch.setenv("WEIRKEEPER_MAIL_FROM", "weirkeeper@example.org")
            webhook_notice.mailer.cache_clear()
            yield
        webhook_notice.mailer.cache_clear()

    def observe(self, conn: Connection) -> object:
        return {(one["message-id"], one["to"], one.as_string()) for one in self.server.letters}


DRIVERS: Mapping[str, Driver] = {
    "corpus.index": CorpusIndex(),
    "webhook.fanout": WebhookFanout(),
    "webhook.notice": WebhookNotice(),
}


def without_driver(subscriptions: Any, drivers: Mapping[str, object] = DRIVERS) -> set[str]:
    """Names of subscriptions that nobody can drive, and of drivers without a subscription."""
    return {s.name for s in subscriptions} ^ set(drivers)
