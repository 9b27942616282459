"""ADAPTER: what a delivery needs of the database: to be made, leased, settled.

Before this: the handlers of the webhook queue. After it: rows of `delivery`, `delivery_attempt` and
`endpoint`, changed together by SQL functions. No connection is held while a request is under way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shared.backoff import random_token
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.prepared import Row, Value, pieces, prepared
from shared.postgres.driver.statements import statement
from shared.webhooks.body import Format, Message
from shared.webhooks.port import Lease, Settled, Standing

WAITS = ("busy", "paused", "early", "behind")  # why a delivery has to wait for its endpoint
LEAST_HOLD = 1.0  # seconds for which a delivery that is not its endpoint's first closes the key


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint that may take an event."""

    id: int
    patterns: Sequence[str]
    format: Format
    strict: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a request, as it is written.

    Attributes:
        result: delivered, failed or deferred (no attempt spent).
        code: of shared.webhooks.answers.
        delay: seconds to the next try; None = there is none.
        pause: seconds in which the endpoint gets nothing; None = none.
        disable: why the endpoint is disabled; None = it is not.
        url, started_at: what was asked when (Unix seconds).
        status, phases, headers, body, truncated, peer: as answered.
    """

    result: str
    code: str
    delay: float | None
    pause: float | None
    disable: str | None
    url: str
    started_at: float
    status: int | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    headers: Sequence[tuple[str, str]] = ()
    body: bytes | None = None
    truncated: bool = False
    peer: str | None = None


def probe(conn: Connection, gap: float, limit: int) -> tuple[int, int]:
    """Have endpoints probed that were disabled for their failures.

    Args:
        conn: in autocommit mode.
        gap: seconds since they were disabled, or probed.
        limit: endpoints at most.

    Returns:
        (probes that were begun, endpoints that were looked at).
    """
    with translated():
        row: Any = conn.execute(
            statement("endpoints/probe"), {"gap": gap, "limit": limit}
        ).fetchone()
    return row[0], row[1]


class PostgresDeliveries:
    """Deliveries through one connection in autocommit mode."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def targets(self, owner_id: str) -> list[Target]:
        """Endpoints of an owner that take new events, whatever their types."""
        with translated():
            rows: Any = self._conn.execute(
                statement("endpoints/of_owner"), {"owner_id": owner_id}
            ).fetchall()
        return [Target(*row) for row in rows]

    def message(self, event_id: str) -> Message | None:
        """An event as it is sent, its data spelt as the database does; None = it was pruned."""
        with translated():
            row: Any = self._conn.execute(
                statement("deliveries/message"), {"event_id": event_id}
            ).fetchone()
        return None if row is None else Message(*row)

    def together(self) -> AbstractContextManager[object]:
        """All or nothing of what is added within."""
        return self._conn.transaction()

    def line(self, endpoint_id: int, event_id: str) -> list[str]:
        """Take what stands in line for an endpoint that keeps order, up to and with an event.

        In the transaction that is open; who comes later waits for it, and so stays behind.

        Returns:
            Ids of events, in order, the event itself last, whether it stood there or not.
        """
        params = {"endpoint_id": endpoint_id, "event_id": event_id}
        with translated():
            rows: Any = self._conn.execute(statement("deliveries/line"), params).fetchall()
        return [*(row[0] for row in rows if row[0] != event_id), event_id]

    def add(
        self, endpoint_id: int, event_id: str, body: bytes, trigger: str,
        priority: int | None = None,
    ) -> str | None:  # fmt: skip
        """Put an event on its way to one endpoint, in the transaction that is open.

        Returns:
            The delivery's id; None = it is on its way already.
        """
        params = {
            "endpoint_id": endpoint_id,
            "event_id": event_id,
            "body": body,
            "trigger": trigger,
            "priority": priority,
        }
        with translated():
            row: Any = self._conn.execute(statement("deliveries/deliver"), params).fetchone()
        return None if row is None else row[0]

    def lease(self, delivery_id: int, seconds: float) -> Lease | Standing:
        """Take the lease of a delivery's endpoint, for so many seconds, or tell why not."""
        token = random_token()
        params = {"id": delivery_id, "seconds": seconds, "token": token}
        with translated():
            answer, *found = prepared(self._conn, "deliveries/take").raw(params)
            if answer != b"leased":
                return self._standing((answer or b"").decode(), delivery_id)
        return _granted(delivery_id, token, found)

    def settle(self, lease: Lease, report: Report) -> Settled:
        """Write what came of it, if the lease is still ours."""
        params: dict[str, Value] = {
            "id": lease.delivery_id,
            "token": lease.token,
            "result": report.result,
            "code": report.code,
            "delay": report.delay,
            "pause": report.pause,
            "disable": report.disable,
            "status": report.status,
            "phases": json.dumps(dict(report.phases)),
            "headers": json.dumps([list(pair) for pair in report.headers]),
            "body": report.body,
            "truncated": report.truncated,
            "peer": report.peer,
            "url": report.url,
            "started_at": report.started_at,
        }
        with translated():
            row = prepared(self._conn, "deliveries/settle").raw(params)
        held, attempts, disabled, notice = (None if one is None else one.decode() for one in row)
        return Settled(
            held == "true", int(attempts or 0), disabled, None if notice is None else int(notice)
        )

    def release(self, lease: Lease) -> None:
        """Give the lease back without an attempt: the fault was ours."""
        params = {"id": lease.delivery_id, "token": lease.token}
        with translated():
            self._conn.execute(statement("deliveries/release"), params)

    def _standing(self, why: str, delivery_id: int) -> Standing:
        held: Any = None
        if why in WAITS:
            params = {"id": delivery_id, "least": LEAST_HOLD}
            held = self._conn.execute(statement("deliveries/hold"), params).fetchone()
        row: Any = self._conn.execute(
            statement("deliveries/standing"), {"id": delivery_id}
        ).fetchone()
        return Standing(why, row[0] if row else None, parks=held is not None and held[0])


def _granted(delivery_id: int, token: int, found: Row) -> Lease:
    """A lease, of the columns of deliveries/take behind the answer."""
    body, sealed = found[2] or b"", found[15] or b""
    text = [None if one is None else one.decode() for one in (*found[:2], None, *found[3:15])]
    event_id, event_type, _, attempts, owner_id, trigger, begun_at, *endpoint = text
    number, url, headers, form, signature, schedule, ordering, left = endpoint
    return Lease(
        delivery_id=delivery_id,
        token=token,
        event_id=event_id or "",
        event_type=event_type or "",
        body=body,
        attempts=int(attempts or 0),
        owner_id=owner_id or "",
        trigger=trigger or "",
        begun_at=datetime.fromtimestamp(float(begun_at or 0), UTC),
        endpoint_id=number or "",
        url=url or "",
        headers=json.loads(headers or "{}"),
        format="cloudevents" if form == "cloudevents" else "standard",
        signature=signature or "",
        schedule=None if schedule is None else tuple(json.loads(schedule)),
        strict=ordering == "strict",
        sealed=pieces(sealed),
        seconds=float(left or 0),
    )
