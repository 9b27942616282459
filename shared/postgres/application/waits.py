"""ADAPTER of the port Waits, for application processes: brief waits, from any thread.

Before it: an enqueue or a recorded event that has committed. One LISTEN connection, open only
while somebody waits (and a little longer), and one for reads, whatever the number of threads.
A wait registers, reads, waits, and reads again at each wake, after each reconnect, and on a slow
poll; so it needs no notice to be right. A connect takes longer than a short job, and slows it:
where nobody listens yet, a wait takes a few quick looks before it has that connect, or has it for
the next wait if those were enough. Reads are made in a thread of their own (shared.notices.reads),
so that a server that stands still keeps a caller for 3 s more than its bound and no longer.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Generic, Self, TypeVar, cast
from uuid import UUID

from shared.clock import SYSTEM
from shared.errors import InvalidArguments, NotFound, WaitersFull
from shared.jobs.lookups import wait_bound
from shared.jobs.port import Wait
from shared.notices.channels import FANOUT, FINAL, is_event_id, is_job_id
from shared.notices.reads import Read, Reads
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres.application.answers import Answers, Fanout
from shared.postgres.application.ear import PostgresEar

POLL = 1.0  # seconds between looks when no notice comes
GLANCE = 0.002  # seconds between quick looks while nobody listens; then doubling, up to POLL
GLANCES = 5  # quick looks before LISTEN is connected for: the end of a short job is among them
IDLE = 60.0  # seconds between turns of the reading thread when nobody asks
T = TypeVar("T")


class PostgresWaits:
    """Waits of one process; leave its block, or `close` it, at the end.

    Args:
        url: libpq URI, direct (no pooler).
        name: of the caller, shown as `application_name` of both sessions: "weirkeeper NAME …".
    """

    def __init__(self, url: str, name: str) -> None:
        self._answers = Answers(url, name)
        self._reads = Reads(self._answers, lambda _: None, turn=IDLE)
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
        key = checked_job_id(job_id)
        last: Last[Wait] = Last(FINAL, key, lambda answer: answer.finished)
        return self._until(last, max_seconds)

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
        key = checked_event_id(event_id)
        last: Last[Fanout] = Last(FANOUT, key, lambda jobs: jobs is not None)
        jobs = self._until(last, max_seconds)
        return None if jobs is None else jobs.get(subscription)

    def open(self) -> None:
        """Begin to connect the session that reads, so that the first wait finds it; never blocks.

        Never needed, harmless when repeated; that a database is away is told by waits. A thread
        does not survive a fork: open it in the process that waits.
        """
        self._reads.start()

    def close(self) -> None:
        """End both connections."""
        self._source.stop()
        self._reads.stop()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _until(self, last: Last[T], max_seconds: float) -> T:
        deadline = SYSTEM.monotonic() + wait_bound(max_seconds)
        woken = threading.Event()
        self._reads.start()
        with ExitStack() as stack:
            try:
                stack.enter_context(self._waiters.register(last.channel, last.key, woken.set))
            except WaitersFull:
                deadline = 0.0  # look once, never queue
            while True:
                woken.clear()
                last.keep(self._reads.read(last.channel, last.key))
                left = deadline - SYSTEM.monotonic()
                if left <= 0 or last.satisfied():
                    last.leave(self._source)
                    return last.value()
                woken.wait(min(left, last.pause(self._source)))


def _text(what: str, given: object, other: type, hint: str) -> str:
    """An id as text: what Python and SQL return for the same one differs in type."""
    if isinstance(given, str):
        return given
    if isinstance(given, other) and not isinstance(given, bool):
        return str(given)
    raise InvalidArguments(
        f"{what}: expected text or {other.__name__}; got {given!r:.40}; give {hint}"
    )


def checked_job_id(given: object) -> str:
    """Return the text of what can be a job's id.

    Raises:
        InvalidArguments: neither text nor a number.
        NotFound: it cannot.
    """
    text = _text("job id", given, int, "what enqueue returned")
    if not is_job_id(text):
        raise _not_kept(FINAL, text)
    return text


def checked_event_id(given: object) -> str:
    """Return the text of what can be an event's id, in lower case.

    Raises:
        InvalidArguments: neither text nor a uuid.
        NotFound: it cannot.
    """
    text = _text("event id", given, UUID, "what record returned")
    if not is_event_id(text.lower()):
        raise _not_kept(FANOUT, text)
    return text.lower()


def _not_kept(channel: str, key: str) -> NotFound:
    what = "job" if channel == FINAL else "event"
    return NotFound(f"{what}: expected the id of one that is kept; got {key[:40]!r}")


class Last(Generic[T]):
    """What is waited for, and what was read of it last: an outage does not end a wait.

    Args:
        channel: FINAL for a job, FANOUT for an event.
        key: its id.
        done: whether an answer ends the wait.
    """

    def __init__(self, channel: str, key: str, done: Callable[[T], bool]) -> None:
        self.channel = channel
        self.key = key
        self._done = done
        self._newest = Read()
        self._away = False
        self._pauses = 0
        self._pause = GLANCE

    def keep(self, read: Read) -> None:
        """Keep the answer, or why there is none yet.

        Raises:
            NotFound: no such job or event.
            WeirkeeperError: one that another look would meet as well.
        """
        if read.error is not None and not read.error.transient:
            raise read.error
        if read.error is None and not read.known:
            raise _not_kept(self.channel, self.key)
        if read.known or not self._newest.known:
            self._newest = read
        self._away = read.error is not None

    def satisfied(self) -> bool:
        """Whether the answer ends the wait."""
        return self._newest.known and self._done(self._newest.found)

    def pause(self, source: NoticeSource) -> float:
        """Seconds until the next look, if nothing wakes before; has `source` connect in time."""
        self._pauses += 1
        quick = not source.connected and not self._away
        if quick and self._pauses <= GLANCES:
            return GLANCE
        source.want()  # it wakes all who wait once it hears
        if not quick:
            return POLL
        self._pause = min(POLL, 2 * self._pause)
        return self._pause

    def leave(self, source: NoticeSource) -> None:
        """The wait is over: whoever did not find it so at once is likely to wait again."""
        if self._pauses:
            source.want()

    def value(self) -> T:
        """The newest answer.

        Raises:
            WeirkeeperError: there never was one.
        """
        if self._newest.error is not None:
            raise self._newest.error
        return cast("T", self._newest.found)
