"""ADAPTER of the port Waits, for application processes: brief waits, from any thread.

Before it: an enqueue or a recorded event that has committed. One LISTEN connection, open only
while somebody waits (and a little longer), and one for reads, whatever the number of threads.
A wait registers, reads, waits, and reads again at each wake, after each reconnect, and on a slow
poll; so it needs no notice to be right.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Generic, Self, TypeVar
from uuid import UUID

from shared.clock import SYSTEM
from shared.errors import InvalidArguments, NotFound, WaitersFull, WeirkeeperError
from shared.jobs.port import Wait
from shared.notices.channels import FANOUT, FINAL, is_event_id, is_job_id
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres.answers import Answers, Fanout
from shared.postgres.ear import PostgresEar

POLL = 1.0  # seconds between looks when no notice comes
T = TypeVar("T")

log = logging.getLogger(__name__)


class PostgresWaits:
    """Waits of one process; `close` it at the end.

    Args:
        url: libpq URI, direct (no pooler).
        name: of the caller, shown as `application_name` of both sessions: "weirkeeper NAME …".
    """

    def __init__(self, url: str, name: str) -> None:
        self._answers = Answers(url, name)
        self._reading = threading.Lock()  # the read connection
        self._waiters = Waiters()
        ear = PostgresEar(url, name)
        # When the loop died, the slow poll still answers.
        self._source = NoticeSource(ear, self._waiters, lambda _: None, always=False)

    def wait(self, job_id: str | int, max_seconds: float) -> Wait:
        """Wait until a job is final; see shared.jobs.port.Waits.wait.

        Args:
            job_id: a number, or its text as `enqueue` returns it.
            max_seconds: bound; 0 looks once.

        Returns:
            How the job stands. Not finished: the bound passed, or 64 others wait already.

        Raises:
            InvalidArguments: neither text nor a number.
            NotFound: no such job.
            DatabaseUnavailable: nothing could be read within the bound.
        """
        key = _text("job id", job_id, int, "what enqueue returned")

        def look() -> Wait:
            return job_answer(self._answers, key)

        return self._until(FINAL, key, look, lambda answer: answer.finished, max_seconds)

    def await_fanout(
        self, event_id: str | UUID, subscription: str, max_seconds: float
    ) -> str | None:
        """Wait for an event's fan-out; see shared.jobs.port.Waits.await_fanout.

        Args:
            event_id: a uuid, or its text as `record` returns it.
            subscription: whose job is asked for.
            max_seconds: bound; 0 looks once.

        Returns:
            The job's id. None: the bound passed, or the event has no job for the subscription.

        Raises:
            InvalidArguments: neither text nor a uuid.
            NotFound: no such event.
            DatabaseUnavailable: nothing could be read within the bound.
        """
        key = _text("event id", event_id, UUID, "what record returned").lower()

        def look() -> Fanout:
            return fanout_answer(self._answers, key)

        jobs = self._until(FANOUT, key, look, lambda jobs: jobs is not None, max_seconds)
        return None if jobs is None else jobs.get(subscription)

    def close(self) -> None:
        """End both connections."""
        self._source.stop()
        with self._reading:
            self._answers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _until(
        self,
        channel: str,
        key: str,
        look: Callable[[], T],
        done: Callable[[T], bool],
        max_seconds: float,
    ) -> T:
        deadline = SYSTEM.monotonic() + max_seconds
        woken = threading.Event()
        last = Last[T]()
        with ExitStack() as stack:
            try:
                stack.enter_context(self._waiters.register(channel, key, woken.set))
            except WaitersFull:
                deadline = 0.0  # look once, never queue
            else:
                with self._reading:  # one thread at a time
                    self._source.start()
            while True:
                woken.clear()
                last.keep(self._read, look)
                left = deadline - SYSTEM.monotonic()
                if left <= 0 or last.satisfies(done):
                    return last.value()
                woken.wait(min(left, POLL))

    def _read(self, look: Callable[[], T]) -> T:
        with self._reading:
            return look()


def _text(what: str, given: object, other: type, hint: str) -> str:
    """An id as text: what Python and SQL return for the same one differs in type."""
    if isinstance(given, str):
        return given
    if isinstance(given, other) and not isinstance(given, bool):
        return str(given)
    raise InvalidArguments(
        f"{what}: expected text or {other.__name__}; got {given!r:.40}; give {hint}"
    )


def job_answer(answers: Answers, job_id: str) -> Wait:
    """How a job stands.

    Raises:
        NotFound: no such job.
    """
    found = answers.jobs([job_id]) if is_job_id(job_id) else {}
    if job_id not in found:
        raise NotFound(f"job: expected the id of one that is kept; got {job_id[:40]!r}")
    return found[job_id]


def fanout_answer(answers: Answers, event_id: str) -> Fanout:
    """Where an event went; its id in lower case.

    Raises:
        NotFound: no such event.
    """
    found = answers.fanouts([event_id]) if is_event_id(event_id) else {}
    if event_id not in found:
        raise NotFound(f"event: expected the id of one that is kept; got {event_id[:40]!r}")
    return found[event_id]


class Last(Generic[T]):
    """What was read last: an outage in the middle of a wait does not end the wait."""

    def __init__(self) -> None:
        self._answers: list[T] = []
        self._error: WeirkeeperError | None = None

    def keep(self, read: Callable[[Callable[[], T]], T], look: Callable[[], T]) -> None:
        """Look; keep the answer, or why there is none now."""
        try:
            self._answers[:] = [read(look)]
        except WeirkeeperError as error:
            if not error.transient:
                raise
            log.debug("a wait could not read: %s", error)
            self._error = error

    def satisfies(self, done: Callable[[T], bool]) -> bool:
        """Whether the answer ends the wait."""
        return bool(self._answers) and done(self._answers[0])

    def value(self) -> T:
        """The newest answer; raises the error when there never was one."""
        if not self._answers and self._error is not None:
            raise self._error
        return self._answers[0]
