"""The ports, for an application that names them in its own types.

`weirkeeper.Jobs` and its neighbours are the adapters for Postgres. Code that is handed one of them,
or `weirkeeper.testing.MemoryRuntime` in a test, names the port instead:

    from weirkeeper.ports import Jobs

    def pay(order: int, jobs: Jobs) -> str:
        return jobs.enqueue("mail.receipt", {"order": order})

A handler is a `Handler`, one of a subscription an `EventHandler`; both may be async. What they
answer is an `Outcome`. Only for types: nothing here is made or called.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol

from shared.events.event import Event
from shared.events.port import AsyncRecorder, Recorder
from shared.jobs.context import Context
from shared.jobs.outcomes import Outcome
from shared.jobs.port import Inspector, Jobs, Runtime, Waits
from shared.jobs.port_async import AsyncInspector, AsyncJobs, AsyncRuntime, AsyncWaits

__all__ = [
    "AsyncInspector",
    "AsyncJobs",
    "AsyncRecorder",
    "AsyncRuntime",
    "AsyncWaits",
    "EventHandler",
    "Handler",
    "Inspector",
    "Jobs",
    "Outcome",
    "Recorder",
    "Runtime",
    "Waits",
]


class Handler(Protocol):
    """What a kind names."""

    def __call__(
        self, ctx: Context, args: dict[str, Any], /
    ) -> Outcome | Awaitable[Outcome | None] | None:
        """Run one job; idempotent, for every job runs at least once."""
        ...


class EventHandler(Protocol):
    """What a subscription names."""

    def __call__(
        self, ctx: Context, args: dict[str, Any], event: Event, /
    ) -> Outcome | Awaitable[Outcome | None] | None:
        """Run one job for an event; idempotent, for every job runs at least once."""
        ...
