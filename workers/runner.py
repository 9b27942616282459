"""Running one job in a child: the handler is called, and whatever it does becomes an outcome.

Before this: pool.child received the job. After it: the outcome travels back. An exception is a
failed attempt; only Stopped passes through, to whoever asked for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from shared.clock import SYSTEM
from shared.events.event import Event
from shared.jobs.answers import read_answer
from shared.jobs.context import Context
from shared.jobs.failures import describe, stack
from shared.jobs.outcomes import Discard
from workers.handlers.registry import Handler
from workers.pool.child import Stopped
from workers.pool.messages import Outcome

log = logging.getLogger(__name__)


class Session(Protocol):
    """A child's way to the database."""

    def connection(self) -> AbstractContextManager[Any]:
        """Its one connection, opened when first asked for."""
        ...

    def load_event(self, event_id: str) -> Event | None:
        """An event; None = it was pruned."""
        ...


class Runner:
    """Runs the jobs of one child.

    Args:
        handlers: by kind.
        session: for handlers and events.
        asked: whether the running job was asked to stop.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], session: Session, asked: Callable[[], bool]
    ) -> None:
        self._handlers = handlers
        self._session = session
        self._asked = asked

    def __call__(self, job: dict[str, Any]) -> Outcome:
        """Run one job to its outcome."""
        try:
            return outcome_of(self._call(job), job["kind"])
        except Stopped:
            raise
        except BaseException as error:  # noqa: BLE001  (sys.exit in a handler is a failure too)
            return Outcome("failed", error=describe(error), stack=stack(error))

    def _call(self, job: dict[str, Any]) -> object:
        handler = self._handlers[job["kind"]]
        deadline = SYSTEM.monotonic() + job["timeout_ms"] / 1000
        context = Context.of(job, deadline, self._asked, self._session.connection)
        if not handler.wants_event:
            return handler.function(context, job["args"])
        event_id = job["event_id"] or job["args"].get("event_id")
        event = self._session.load_event(event_id) if event_id else None
        if event is None:
            return Discard(f"event {event_id} was pruned before this job ran")
        return handler.function(context, job["args"], event)


def outcome_of(given: object, kind: str) -> Outcome:
    """What a handler's answer means, as it travels.

    Raises:
        InvalidArguments: a result that cannot be stored, a delay that is none, another type.
    """
    if given is None:
        return Outcome("completed")
    answer = read_answer(given, kind)
    told = Outcome(answer.outcome, delay=answer.delay, error=answer.error)
    if answer.result is not None:
        told.result = msgspec.Raw(answer.result.encode())
    return told
