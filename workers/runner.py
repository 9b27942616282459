"""Running one job in a child: the handler is called, and whatever it does becomes an outcome.

Before this: pool.child received the job. After it: the outcome travels back. An exception is a
failed attempt; only Stopped passes through, to whoever asked for it.
"""

from __future__ import annotations

import inspect
import logging
from asyncio import CancelledError
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from shared.clock import SYSTEM
from shared.errors import DatabaseUnavailable
from shared.events.event import Event
from shared.jobs.answers import read_answer
from shared.jobs.context import Context, Report
from shared.jobs.failures import describe, stack
from shared.jobs.hooks import Around, Hook
from shared.jobs.outcomes import Discard, Snooze
from shared.services.bounds import bounded
from shared.services.coroutines import Coroutines
from workers.handlers.registry import Handler
from workers.pool.child import Stopped
from workers.pool.messages import Outcome

log = logging.getLogger(__name__)

AGAIN = 1.0  # seconds until a job is tried again whose event could not be read


class Session(Protocol):
    """A child's way to the database."""

    def connection(self, pristine: bool = False) -> AbstractContextManager[Any]:
        """Its one connection, opened when first asked for; pristine: it is left as it was found."""
        ...

    def load_event(self, event_id: str) -> Event | None:
        """An event; None = it was pruned."""
        ...

    def renew(self) -> None:
        """After a job: nothing that it did to the session reaches the next one."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a child has for its jobs.

    Attributes:
        session: for handlers and events.
        asked: whether the running job was asked to stop.
        report: takes how far the running job is: n, of.
        coroutines: runs what async handlers return.
    """

    session: Session
    asked: Callable[[], bool]
    report: Report
    coroutines: Coroutines


class Runner:
    """Runs the jobs of one child.

    Args:
        handlers: by kind.
        hooks: around every job.
        around: what the child has for them.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], hooks: Sequence[Hook], around: Surroundings
    ) -> None:
        self._handlers = handlers
        self._hooks = hooks
        self._session = around.session
        self._asked = around.asked
        self._report = around.report
        self._coroutines = around.coroutines

    def __call__(self, job: dict[str, Any]) -> Outcome:
        """Run one job to its outcome."""
        deadline = SYSTEM.monotonic() + job["timeout_ms"] / 1000
        connection = self._session.connection
        context = Context.of(job, deadline, self._asked, connection, self._report)
        told = self._told(job, context)
        told.outside = context._outside  # noqa: SLF001  (not for handlers)
        # Whoever was stopped needs none of it: that child is replaced.
        self._session.renew()
        return told

    def _told(self, job: dict[str, Any], context: Context) -> Outcome:
        if self._hooks or context.trace is not None:
            return self._within_hooks(job, context)
        try:
            return outcome_of(self._call(job, context), job["kind"])
        except Stopped:
            raise
        except BaseException as error:  # noqa: BLE001  (sys.exit in a handler is a failure too)
            return self._failed(job, error)

    def _within_hooks(self, job: dict[str, Any], context: Context) -> Outcome:
        around = Around(self._hooks, context, Stopped)
        try:
            around.begin()
            told = outcome_of(self._call(job, context), job["kind"])
        except Stopped as stopped:
            around.end("stopped", stopped)
            raise
        except BaseException as error:  # noqa: BLE001  (sys.exit in a handler is a failure too)
            told = self._failed(job, error)
            around.end(told.outcome, error)
        else:
            around.end(told.outcome)
        return told

    def _call(self, job: dict[str, Any], context: Context) -> object:
        handler = self._handlers[job["kind"]]
        limits = handler.limits
        if limits is None:
            return self._run(handler, job, context)
        with bounded(limits.memory_mib, limits.open_files):
            return self._run(handler, job, context)

    def _run(self, handler: Handler, job: dict[str, Any], context: Context) -> object:
        if not handler.wants_event:
            return self._answer(handler.function(context, job["args"]), context)
        event_id = job["event_id"] or job["args"].get("event_id")
        try:
            event = self._session.load_event(event_id) if event_id else None
        except DatabaseUnavailable as error:  # ours is away: nothing has begun, nothing is spent
            log.warning("job %s is put off: its event cannot be read: %s", job["id"], error)
            return Snooze(AGAIN)
        if event is None:
            return Discard(f"event {event_id} was pruned before this job ran")
        return self._answer(handler.function(context, job["args"], event), context)

    def _answer(self, given: object, context: Context) -> object:
        """What a handler answered; that of an async one comes when its coroutine has run."""
        if not inspect.iscoroutine(given):
            return given

        def left(tasks: list[str]) -> None:
            context.log.warning("left tasks behind, which were cancelled: %s", ", ".join(tasks))

        try:
            return self._coroutines.run(given, left)
        except CancelledError as cancelled:
            if self._asked():
                raise Stopped from cancelled
            raise

    def _failed(self, job: dict[str, Any], error: BaseException) -> Outcome:
        """A failed attempt; or, when what the kind depends on is away, none: it is put off."""
        handler = self._handlers.get(job["kind"])
        told = Outcome("failed", error=describe(error), stack=stack(error))
        if handler is not None and isinstance(error, handler.away):
            told.outcome, told.delay = "snoozed", handler.put_off
        return told


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
