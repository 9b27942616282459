"""What is told of webhooks: endpoints, deliveries, attempts, replays. Data only.

Made by the adapter of shared.webhooks.port, shown by operations. Ids and sequence numbers are
decimal strings; moments are ISO 8601 in UTC. A secret is in `Created` alone, once.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Endpoint(msgspec.Struct):
    """Where an owner's events are sent. Values of `headers` are masked.

    `waiting` counts to 1,000, then 1,001 means more.
    """

    id: str
    url: str
    description: str
    event_types: list[str]
    headers: dict[str, str]
    contact: str | None
    format: str
    signature: str
    ordering: str
    rate: int | None
    schedule: list[float] | None
    enabled: bool
    disabled_reason: str | None
    disabled_at: str | None
    failing_since: str | None
    failures: int
    last_success_at: str | None
    busy_until: str | None
    not_before: str | None
    created_at: str
    updated_at: str
    waiting: int


class Created(msgspec.Struct):
    """A new endpoint or secret: what the receiver verifies with, shown here and never again."""

    id: str
    secret: str


class Delivery(msgspec.Struct):
    """One event on its way to one endpoint; `code` and `status` of the last answer."""

    id: str
    event_id: str
    event_seq: str
    event_type: str
    trigger: str
    state: str
    job_id: str | None
    attempts: int
    tries: int
    next_at: str | None
    created_at: str
    ended_at: str | None
    code: str | None
    status: int | None


class Attempt(msgspec.Struct):
    """One request and its answer. `phases` in milliseconds; `body` as far as it was kept."""

    number: int
    trigger: str
    started_at: str
    finished_at: str
    url: str
    result: str
    code: str
    status: int | None
    phases: dict[str, float]
    headers: list[list[str]]
    body: str | None
    truncated: bool


class Missed(msgspec.Struct):
    """An event as an endpoint was to get it, for a receiver that looks for gaps."""

    seq: str
    event_id: str
    event_type: str
    state: str
    body: str


class Replay(msgspec.Struct):
    """Events that are sent once more. `total`: counted when it was planned."""

    id: str
    endpoint_id: str
    since: str
    until: str
    failed_only: bool
    state: str
    total: int
    sent: int
    job_id: str | None
    created_at: str
    ended_at: str | None


class Told(msgspec.Struct):
    """How an event stands with an endpoint: one plain sentence and the facts behind it."""

    sentence: str
    facts: dict[str, Any]
