"""PORT of the log of events: look at what was recorded and what became of it, and step in by hand.

Called by the operations events.*; the adapter is shared.postgres.events.log. Ids are text; moments
are ISO 8601 in UTC, so that every face shows them as they are. Only `get` reads an event's data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

PENDING, FAILING, POISONED, FANNED_OUT = "pending", "failing", "poisoned", "fanned_out"
STATES = (PENDING, FAILING, POISONED, FANNED_OUT)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What one subscriber got: its newest job for the event.

    Attributes:
        job_id: None: left out on purpose (`state` skipped).
        state: of the job; gone: it was pruned.
    """

    subscription: str
    job_id: str | None
    state: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event as it stands. A list leaves what follows `state` out, but for `failures`.

    Attributes:
        state: pending (the relay has not come to it), failing (it will be tried again), poisoned
            (not by itself), fanned_out.
        failures: tries of the relay that failed.
        deliveries: by subscription; empty when nobody wanted it.
    """

    id: str
    type: str
    owner_id: str | None
    subject: str
    occurred_at: str
    state: str
    failures: int = 0
    data: Mapping[str, Any] | None = None
    trace: str | None = None
    last_error: str | None = None
    next_try_at: str | None = None
    fanned_out_at: str | None = None
    deliveries: Sequence[Delivery] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which events; what is not given does not matter. `types` None: of any type."""

    types: Sequence[str] | None = None
    subject: str | None = None
    owner_id: str | None = None
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Type:
    """A declared type, and who subscribes to it in what runs on this database."""

    name: str
    description: str
    subject: str
    exposure: str
    subscriptions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Span:
    """What a replay is about: events that occurred from `since` (included) to `until` (not)."""

    subscription: str
    types: Sequence[str]
    since: str
    until: str


@dataclass(frozen=True, slots=True)
class Replay:
    """A replay and how far it is.

    Attributes:
        events: how many it delivers; `done` of them were given to the subscription as `jobs` jobs
            (fewer, where the subscription coalesces).
        state: running, finished or cancelled.
        job_id: the job that does it.
    """

    id: str
    subscription: str
    types: Sequence[str]
    since: str
    until: str
    events: int
    done: int
    jobs: int
    state: str
    job_id: str | None
    created_at: str


class EventLog(Protocol):
    """The log. Each method is one transaction; all raise DatabaseUnavailable when not now."""

    def list(
        self, wanted: Filter, *, limit: int = 50, before: str | None = None
    ) -> Sequence[Recorded]:
        """First what waits for its fan-out, then what was fanned out; each newest first.

        Args:
            wanted: which.
            limit: length of the page; a page without events is the end.
            before: an event's id: only those that stand behind it (the next page).

        Raises:
            InvalidArguments: a filter that makes no sense, or no such event.
        """
        ...

    def get(self, event_id: str) -> Recorded:
        """One event with everything.

        Raises:
            NotFound: no such event.
        """
        ...

    def requeue(self, event_id: str) -> str:
        """Have the relay try an event again whose fan-out failed, its count cleared.

        Returns:
            The state that it then has: failing until it is tried; pending: it is in line anyway.

        Raises:
            NotFound: no such event.
            Conflict: it was fanned out; that is a replay's affair.
        """
        ...

    def requeue_poisoned(self) -> int:
        """Requeue every poisoned event; how many."""
        ...

    def skip(self, event_id: str) -> None:
        """Give up an event whose fan-out failed: its subscribers are left out on purpose.

        Raises:
            NotFound: no such event.
            Conflict: its fan-out has not failed.
        """
        ...

    def types(self) -> Sequence[Type]:
        """Every declared type, by name."""
        ...

    def last(self, count: int) -> Mapping[str, int]:
        """How many of the last `count` events that were fanned out were of each type."""
        ...

    def plan(self, span: Span) -> int:
        """How many events a replay would deliver now.

        Raises:
            NotFound: no such subscription.
        """
        ...

    def replay(self, span: Span, planned: int, asked_by: str) -> Replay:
        """Begin a replay of exactly as many events as were planned.

        Raises:
            NotFound: no such subscription.
            Conflict: by now they are more, or fewer.
        """
        ...

    def replays(self, limit: int) -> Sequence[Replay]:
        """The last replays, newest first."""
        ...

    def replay_status(self, replay_id: str) -> Replay:
        """One replay.

        Raises:
            NotFound: no such replay.
        """
        ...

    def cancel_replay(self, replay_id: str) -> Replay:
        """Deliver no more events of a replay; one that ended stays as it is.

        Raises:
            NotFound: no such replay.
        """
        ...
