"""PORT of webhooks: what an owner may do with endpoints, and what a delivery needs.

Operations call `Webhooks`; handlers of the webhook queue call `Deliveries`. The adapters are in
shared.postgres. Every call of `Webhooks` names the owner; what belongs to another owner is answered
as if it were not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.webhooks.body import Format
from shared.webhooks.endpoint import OVERLAP, Draft
from shared.webhooks.records import (
    Attempt,
    Created,
    Delivery,
    Endpoint,
    Missed,
    Replay,
    Told,
)


class Webhooks(Protocol):
    """What an owner may do. Each method is a transaction of its own.

    All raise NotFound for an id that is none of the owner's.
    """

    def event_types(self) -> list[tuple[str, str]]:
        """Types that may be sent at all: (name, description), by name."""
        ...

    def endpoints(self, owner_id: str) -> list[Endpoint]:
        """The owner's endpoints, newest first."""
        ...

    def get(self, owner_id: str, endpoint_id: str) -> Endpoint:
        """One endpoint."""
        ...

    def create(self, owner_id: str, draft: Draft) -> Created:
        """Add an endpoint with a secret.

        Raises:
            InvalidArguments: a value that it cannot have; the rule is named.
            Conflict: the owner has as many as one may have.
        """
        ...

    def update(self, owner_id: str, endpoint_id: str, fields: Mapping[str, Any]) -> Endpoint:
        """Change what is given; it holds from the next attempt on.

        Raises:
            InvalidArguments: a value that it cannot have; the rule is named.
        """
        ...

    def delete(self, owner_id: str, endpoint_id: str) -> None:
        """Remove an endpoint, its secrets, its log; what is on its way is cancelled."""
        ...

    def rotate_secret(self, owner_id: str, endpoint_id: str, overlap: float = OVERLAP) -> Created:
        """Add a secret; the ones so far go on signing for `overlap` seconds."""
        ...

    def pause(self, owner_id: str, endpoint_id: str) -> None:
        """Send nothing; deliveries are held."""
        ...

    def resume(self, owner_id: str, endpoint_id: str) -> None:
        """Send again, whyever it was disabled; with a fresh window of failures."""
        ...

    def send_test(self, owner_id: str, endpoint_id: str) -> str:
        """Record an event `webhook.test` for this endpoint alone; return its id.

        Raises:
            Conflict: one was sent a moment ago.
        """
        ...

    def deliveries(
        self,
        owner_id: str,
        endpoint_id: str,
        *,
        state: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Delivery]:
        """Deliveries, newest events first; `before`: an event_seq (the next page)."""
        ...

    def attempts(self, owner_id: str, delivery_id: str) -> list[Attempt]:
        """What was sent and answered, in order."""
        ...

    def missed(self, owner_id: str, endpoint_id: str, after: str, limit: int = 50) -> list[Missed]:
        """What was put on its way to an endpoint after a sequence number, oldest first."""
        ...

    def redeliver(
        self, owner_id: str, *, delivery_id: str | None = None, event_id: str | None = None
    ) -> list[str]:
        """Send a delivery, or all of an event, once more; return those that were started."""
        ...

    def plan_replay(
        self, owner_id: str, endpoint_id: str, since: str, until: str, *, failed_only: bool
    ) -> Replay:
        """Count what a replay would send; nothing is sent."""
        ...

    def start_replay(self, owner_id: str, replay_id: str) -> Replay:
        """Run a plan, in low-priority batches.

        Raises:
            Conflict: it is no plan any more.
        """
        ...

    def cancel_replay(self, owner_id: str, replay_id: str) -> Replay:
        """Send no more of it. Harmless when it has ended."""
        ...

    def replay(self, owner_id: str, replay_id: str) -> Replay:
        """How far it has come."""
        ...

    def explain(self, owner_id: str, endpoint_id: str, event_id: str) -> Told:
        """How an event stands with an endpoint."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to send one delivery, and all that it takes.

    Attributes:
        delivery_id, token: whose lease.
        event_id, event_type: of what is sent.
        body: bytes to send.
        attempts: tries so far in this round that counted.
        owner_id: whose endpoint.
        trigger: why it is sent: auto, test, replay or manual.
        begun_at: when this round of tries began.
        endpoint_id, url, headers, format, signature: of the endpoint, as of now; headers as they
            are stored (shared.webhooks.headers).
        schedule: its own; None = the default.
        strict: it keeps order: while this one waits, so do all behind it.
        sealed: its secrets, newest first.
        seconds: left of the lease when it was read.
    """

    delivery_id: int
    token: int
    event_id: str
    event_type: str
    body: bytes
    attempts: int
    owner_id: str
    trigger: str
    begun_at: datetime
    endpoint_id: str
    url: str
    headers: Mapping[str, Any]
    format: Format
    signature: str
    schedule: tuple[float, ...] | None
    strict: bool
    sealed: Sequence[bytes]
    seconds: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Why a delivery cannot begin.

    Attributes:
        why: gone, ended, disabled, busy, paused, early or behind.
        seconds: until it may be tried again; None = nobody knows.
        parks: the endpoint's key is closed, and it may wait there, in its place of the order.
    """

    why: str
    seconds: float | None
    parks: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What a settle did.

    Attributes:
        held: the lease was still ours; False = nothing was written.
        attempts: of this round that counted.
        disabled: the reason, when the endpoint was disabled by it.
        notice: 50 or 100: the owner is to be told.
    """

    held: bool
    attempts: int
    disabled: str | None
    notice: int | None
