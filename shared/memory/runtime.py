"""The memory adapter, whole: an engine without a database, for an application's own tests.

Built by the test (usually through weirkeeper.testing), from the application as data. After it:
jobs, inspector, recorder and runner, which share one store.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from types import TracebackType
from typing import Self, TypeVar
from uuid import UUID

from shared.app import App
from shared.clock import SYSTEM
from shared.errors import Conflict, NotFound, WaitersFull
from shared.jobs.handler import Handler
from shared.jobs.inspect import Wait
from shared.jobs.lookups import job_number, wait_bound
from shared.memory.clock import StoppedClock
from shared.memory.inspector import MemoryInspector
from shared.memory.jobs import MemoryJobs
from shared.memory.limits import next_opening
from shared.memory.periodics import Periodics
from shared.memory.recorder import MemoryRecorder
from shared.memory.runner import MOST_RUNS, Connect, Runner, no_connection
from shared.memory.store import Store, unspread
from shared.notices.channels import FANOUT, FINAL

T = TypeVar("T")
DAY = 86_400.0


class MemoryRuntime(MemoryJobs, MemoryInspector):
    """Runtime, Waits and Recorder (as `recorder`) in memory.

    Args:
        app: the application's declarations.
        clock: what time it is; None = a stopped one that shows the real time of now.
        handlers: functions to call in place of those that kinds name, by kind.
        connection: what a handler's `ctx.connection()` gives; None = there is no database.
        jitter: spreads the delay after a failure; as it is by default.
        after: an earlier runtime of the application that has ended: its jobs, its clock and the
            records of its periodic jobs are taken over.

    Raises:
        ConfigurationError: the declarations cannot work.
    """

    def __init__(  # noqa: PLR0913  (what a test may want to decide)
        self,
        app: App,
        clock: StoppedClock | None = None,
        *,
        handlers: Mapping[str, Handler] | None = None,
        connection: Connect = no_connection,
        jitter: Callable[[float], float] = unspread,
        after: MemoryRuntime | None = None,
    ) -> None:
        self.store: Store = after.store if after else Store(app, clock or StoppedClock(), jitter)
        self.clock = self.store.clock
        periodics = Periodics(self.store)
        MemoryJobs.__init__(self, self.store)
        MemoryInspector.__init__(self, self.store, periodics)
        for kind in handlers or {}:
            self.store.kind(kind)
        self.recorder = MemoryRecorder(self.store)
        self._runner = Runner(self.store, periodics, handlers or {}, connection)

    def start(self) -> None:
        """Take up the periodic jobs; from now on they tick. Idempotent."""
        with self.store.lock:
            self._periodics.declare()

    def stop(self) -> None:
        """Nothing goes on by itself, so nothing is to be ended."""

    def close_key(self, name: str, until: datetime | None = None) -> None:
        """Start no job of a concurrency key, as `weirkeeper.key_open` does in SQL.

        Args:
            name: of the key; need not be in use.
            until: a moment; None = until it is opened.
        """
        with self.store.lock:
            self.store.closed_keys[name] = until

    def open_key(self, name: str) -> None:
        """Start jobs of a concurrency key again."""
        with self.store.lock:
            self.store.closed_keys.pop(name, None)

    def run_due(self) -> int:
        """Run each job whose time has come once, and those that they enqueue.

        Returns:
            How many ran. A handler's exception is a failed attempt, as ever.
        """
        return self._runner.run_due()

    def run_all(self, max_seconds: float = DAY) -> int:
        """Run what is due, go on to the next moment at which something is, and so on.

        Args:
            max_seconds: how far the clock may go on; what is due later stays.

        Returns:
            How many ran; retries of one job count each.
        """
        ran, left = 0, max_seconds
        while ran <= MOST_RUNS:
            now = self.run_due()
            ran += now
            if now:
                continue
            due = self.next_due_in()
            if due is None or due > left:
                return ran
            self.clock.advance(due)
            left -= due
        raise Conflict(f"run_all: expected an end; got {ran} runs; look for a job that never ends")

    def next_due_in(self) -> float | None:
        """Seconds until the next job or tick is due; None = nothing waits for its time."""
        with self.store.lock:
            moments = (
                self.store.line.next_due(),
                self._periodics.next_due(),
                next_opening(self.store),
            )
            due = min((moment for moment in moments if moment is not None), default=None)
            return None if due is None else (due - self.store.clock.wall()).total_seconds()

    def wait(self, job_id: str | int, max_seconds: float) -> Wait:
        """Wait until a job is final; see shared.jobs.port.Waits.wait.

        Args:
            job_id: a decimal number.
            max_seconds: bound, in real seconds: what is waited for runs in another thread.
        """
        number = job_number(job_id)

        def look() -> Wait:
            return self.store.row(number).answer()

        return self._until(FINAL, str(number), look, lambda answer: answer.finished, max_seconds)

    def await_fanout(
        self, event_id: str | UUID, subscription: str, max_seconds: float
    ) -> str | None:
        """Wait for an event's fan-out; see shared.jobs.port.Waits.await_fanout."""
        key = str(event_id).lower()

        def look() -> Mapping[str, str]:
            if key not in self.store.outbox:
                raise NotFound(f"event: expected the id of one that is kept; got {key[:40]!r}")
            return self.store.outbox[key][1]

        return self._until(FANOUT, key, look, lambda _: True, max_seconds).get(subscription)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _until(
        self,
        channel: str,
        key: str,
        look: Callable[[], T],
        done: Callable[[T], bool],
        max_seconds: float,
    ) -> T:
        """Register first, then read, then wait, and read again at each wake."""
        deadline = SYSTEM.monotonic() + wait_bound(max_seconds)
        woken = threading.Event()
        with ExitStack() as stack:
            try:
                stack.enter_context(self.store.waiters.register(channel, key, woken.set))
            except WaitersFull:
                deadline = 0.0  # look once, never queue
            while True:
                woken.clear()
                with self.store.lock:
                    answer = look()
                left = deadline - SYSTEM.monotonic()
                if left <= 0 or done(answer):
                    return answer
                woken.wait(left)
