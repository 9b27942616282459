"""ADAPTER of the port Webhooks: endpoints, their secrets and their switches.

Before this: operations. After it: rows of `endpoint` and `endpoint_secret`. The log of deliveries
is shared.postgres.webhooks.log; replays are shared.postgres.webhooks.replays.
Every statement names the owner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.events.globs import matches
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.looks import bounded
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.queues import controls
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.postgres.webhooks.ids import number
from shared.postgres.webhooks.log import PostgresWebhookLog
from shared.postgres.webhooks.replays import PostgresReplays
from shared.postgres.webhooks.rows import NONE, endpoint
from shared.webhooks.endpoint import (
    MAX_ENDPOINTS,
    OVERLAP,
    TEST,
    Draft,
    check_fields,
    check_overlap,
    test_subject,
)
from shared.webhooks.records import Created, Endpoint
from shared.webhooks.rules import Rules

TEST_GAP = 10.0  # seconds between two tests of one endpoint
_CHANGEABLE = (
    "url", "description", "event_types", "headers", "contact", "format", "ordering", "rate",
    "schedule",
)  # fmt: skip


class PostgresWebhooks(PostgresWebhookLog, PostgresReplays):
    """Webhooks through one connection in autocommit mode."""

    def __init__(self, conn: Connection, rules: Rules) -> None:
        super().__init__(conn)
        self._conn = conn
        self._rules = rules

    def endpoints(self, owner_id: str) -> list[Endpoint]:
        """The owner's endpoints; see shared.webhooks.port.Webhooks, as all that follow."""
        return self._list(owner_id, None)

    def get(self, owner_id: str, endpoint_id: str) -> Endpoint:
        """One endpoint."""
        found = self._list(owner_id, number(endpoint_id))
        if not found:
            raise missing(endpoint_id)
        return found[0]

    def create(self, owner_id: str, draft: Draft) -> Created:
        """Add an endpoint with a secret."""
        fields = {name: getattr(draft, name) for name in (*_CHANGEABLE, "signature")}
        fields["headers"] = dict(draft.headers or {})
        self._check(fields)
        with translated(), self._conn.transaction():
            have: Any = self._one("endpoints/count", {"owner_id": owner_id})
            if have[0] >= MAX_ENDPOINTS:
                raise Conflict(
                    f"endpoint: expected at most {MAX_ENDPOINTS} of an owner; there are {have[0]}; "
                    "delete one"
                )
            row = self._one(
                "endpoints/create", {**self._stored(fields, owner_id), "owner_id": owner_id}
            )
            return self._new_secret(owner_id, row[0], draft.signature)

    def update(self, owner_id: str, endpoint_id: str, fields: Mapping[str, Any]) -> Endpoint:
        """Change what is given."""
        self._check(fields)
        given = {name: fields[name] for name in _CHANGEABLE if name in fields}
        params = {
            **dict.fromkeys(_CHANGEABLE),
            **self._stored(given, owner_id),
            "given": list(given),
        }
        params |= {"id": number(endpoint_id), "owner_id": owner_id}
        with translated(), self._conn.transaction():
            if self._one("endpoints/update", params) is None:
                raise missing(endpoint_id)
            self._run("endpoints/open", params)
        return self.get(owner_id, endpoint_id)

    def delete(self, owner_id: str, endpoint_id: str) -> None:
        """Remove an endpoint; what is on its way is cancelled."""
        params = {"id": number(endpoint_id), "owner_id": owner_id}
        with translated(), self._conn.transaction():
            self._lock(params, endpoint_id)
            jobs = self._one("endpoints/jobs", params)[0]
            if jobs:
                controls.cancel(self._conn, jobs)
            self._run("endpoints/delete", params)

    def rotate_secret(self, owner_id: str, endpoint_id: str, overlap: float = OVERLAP) -> Created:
        """Add a secret; the ones so far go on signing for a while."""
        check_overlap(overlap)
        params = {"id": number(endpoint_id), "owner_id": owner_id, "overlap": overlap}
        with translated(), self._conn.transaction():
            self._lock(params, endpoint_id)
            self._run("endpoints/retire_secrets", params)
            signature = self.get(owner_id, endpoint_id).signature
            return self._new_secret(owner_id, endpoint_id, signature)

    def pause(self, owner_id: str, endpoint_id: str) -> None:
        """Send nothing; deliveries are held."""
        params = {"id": number(endpoint_id), "owner_id": owner_id, "reason": "manual"}
        with translated(), self._conn.transaction():
            self._lock(params, endpoint_id)
            self._run("endpoints/disable", params)

    def resume(self, owner_id: str, endpoint_id: str) -> None:
        """Send again, with a fresh window of failures."""
        params = {"id": number(endpoint_id), "owner_id": owner_id}
        with translated(), self._conn.transaction():
            self._lock(params, endpoint_id)
            found = self.get(owner_id, endpoint_id)
            if found.disabled_reason == "blocked":  # it would be again, one delivery later
                self._rules.check_url(found.url)
            self._run("endpoints/enable", params)

    def send_test(self, owner_id: str, endpoint_id: str) -> str:
        """Record an event for this endpoint alone."""
        params = {"id": number(endpoint_id), "owner_id": owner_id, "gap": TEST_GAP}
        with translated(), self._conn.transaction():
            self._lock(params, endpoint_id)
            if self._one("endpoints/test", params) is None:
                raise Conflict(
                    f"test: expected {TEST_GAP:g} s since the last one; got less; try again later"
                )
            return PostgresRecorder(self._conn).record(
                TEST, owner_id=owner_id, subject=test_subject(endpoint_id)
            )

    def wanting(self, owner_id: str, types: Sequence[str]) -> dict[str, list[str]]:
        """Endpoints of an owner by the types that they take; see shared.events.endpoints."""
        sent = {name for name, _ in self.event_types()}
        with bounded(self._conn):
            found = PostgresDeliveries(self._conn).targets(owner_id)
        return {
            name: [str(t.id) for t in found if any(matches(one, name) for one in t.patterns)]
            for name in types
            if name in sent
        }

    def _list(self, owner_id: str, wanted: int | None) -> list[Endpoint]:
        with bounded(self._conn):
            rows = self._all("endpoints/list", {"owner_id": owner_id, "id": wanted})
        return [endpoint(row) for row in rows]

    def _check(self, fields: Mapping[str, Any]) -> None:
        check_fields(fields)
        if "url" in fields:
            self._rules.check_url(fields["url"])
        if fields.get("headers"):
            self._rules.check_headers(fields["headers"])
        if fields.get("schedule") is not None:
            self._rules.check_schedule(tuple(fields["schedule"]))
        known = [name for name, _ in self.event_types()]
        for pattern in fields.get("event_types", ()):
            if not any(matches(pattern, name) for name in known):
                raise InvalidArguments(
                    f"event_types: expected what matches one of {', '.join(known)}; got {pattern!r}"
                )

    def _new_secret(self, owner_id: str, endpoint_id: str, signature: str) -> Created:
        secret = self._rules.new_secret("v1a" if signature == "v1a" else "v1")
        sealed = self._rules.seal(secret.reveal(), owner_id)
        self._run("endpoints/add_secret", {"id": number(endpoint_id), "sealed": sealed})
        return Created(endpoint_id, secret.for_receiver())

    def _stored(self, fields: Mapping[str, Any], owner_id: str) -> dict[str, Any]:
        stored = dict(fields)
        for name in ("event_types", "schedule"):
            if stored.get(name) is not None:
                stored[name] = list(stored[name])
        if "headers" in stored:
            sealed = self._rules.seal_headers(stored["headers"] or {}, owner_id)
            stored["headers"] = json.dumps(sealed)
        return stored

    def _lock(self, params: Mapping[str, Any], asked: str) -> None:
        if self._one("endpoints/lock", params) is None:
            raise missing(asked)


def missing(endpoint_id: str) -> NotFound:
    """The one answer for an endpoint that is not there, or another owner's."""
    return NotFound(f"endpoint: expected the id of one of yours; got {endpoint_id[:40]!r}; {NONE}")
