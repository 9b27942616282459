"""Running jobs, in the caller's thread, until nothing is due.

Before it: an enqueue that has committed. After it: whoever waits is told. A handler runs without
the lock, so that it may enqueue, look and cancel. Nothing here stops a handler: timeouts and dead
children belong to real queue processes.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from typing import Any

from shared.clock import SYSTEM
from shared.errors import Conflict, DatabaseUnavailable
from shared.jobs.answers import Answer, read_answer
from shared.jobs.context import Context, refuse_database
from shared.jobs.failures import describe, stack
from shared.jobs.handler import Handler, load_handler
from shared.jobs.hooks import Around, load_hooks
from shared.jobs.inspect import Progress
from shared.jobs.outages import CAUSE
from shared.memory.limits import may_start, started
from shared.memory.moves import begin, end, expire_due
from shared.memory.periodics import Periodics
from shared.memory.rows import Row
from shared.memory.store import Store
from shared.services.coroutines import Coroutines

MOST_RUNS = 100_000  # of one pass: more is a job that enqueues itself for ever

Connect = Callable[[], AbstractContextManager[Any]]


def no_connection() -> AbstractContextManager[Any]:
    """Tell a handler that asks for the database that there is none."""
    raise DatabaseUnavailable(
        "ctx.connection: expected a database; the memory adapter has none; "
        "give it one with MemoryRuntime(connection=…)"
    )


class Runner:
    """Runs what is due.

    Args:
        store: the jobs.
        periodics: its ticks.
        handlers: functions in place of those that kinds name.
        connection: what `ctx.connection()` gives.
    """

    def __init__(
        self,
        store: Store,
        periodics: Periodics,
        handlers: Mapping[str, Handler],
        connection: Connect,
    ) -> None:
        self._hooks = load_hooks(store.app.hooks)
        self._store = store
        self._periodics = periodics
        self._given = handlers
        self._found: dict[str, Handler] = {}
        self._connection = connection

    def run_due(self) -> int:
        """Run each job whose time has come once, and those that they enqueue; how many ran."""
        ran: set[int] = set()
        while (row := self._next(ran)) is not None:
            ran.add(row.id)
            self._run(row)
            if len(ran) > MOST_RUNS:
                raise Conflict(f"run_due: expected an end; got {MOST_RUNS} jobs; look for a loop")
        return len(ran)

    def _next(self, ran: set[int]) -> Row | None:
        """Begin the next job. One that goes back in line at once has its turn in the next pass."""
        store = self._store
        with store.lock:
            now = store.clock.wall()
            self._periodics.tick(now)
            store.line.promote(now)
            expire_due(store, now)
            found = store.line.take(lambda row: row.id not in ran and self._may_run(row))
            if found is not None:
                begin(store, found)
                started(store, found)
            return found

    def _may_run(self, row: Row) -> bool:
        self._handler(row)  # one that is not there fails the test, not the job
        return may_start(self._store, row)

    def _run(self, row: Row) -> None:
        told = None
        around = Around(self._hooks, self._context(row), KeyboardInterrupt)
        try:
            around.begin()
            answer = read_answer(self._call(row, around.ctx), row.kind.name)
        except (Exception, SystemExit, CancelledError) as error:  # noqa: BLE001  (of a handler)
            answer, told = self._failed(row, error), stack(error)
            around.end(answer.outcome, error)
        except BaseException as error:
            around.end("stopped", error)
            with self._store.lock:  # the test itself is being ended
                end(self._store, row, Answer("interrupted"))
            raise
        else:
            around.end(answer.outcome)
        with self._store.lock:
            end(self._store, row, answer, told)

    def _failed(self, row: Row, error: BaseException) -> Answer:
        outage = row.kind.outage
        if outage is not None and isinstance(error, outage.load(row.kind.name)):
            return Answer("snoozed", delay=outage.delay, error=describe(error), cause=CAUSE)
        return Answer("failed", error=describe(error))

    def _context(self, row: Row) -> Context:
        job = {
            "id": str(row.id),
            "run": row.run,
            "attempt": row.attempt,
            "max_attempts": row.max_attempts,
            "kind": row.kind.name,
            "owner_id": row.opts.owner_id,
            "trace": row.opts.trace,
        }
        # Of real time, as everywhere: a handler runs in it, and compares with time.monotonic().
        deadline = SYSTEM.monotonic() + row.timeout

        def report(n: float, of: float | None) -> None:
            row.progress = Progress(n, of)

        def connection(pristine: bool) -> AbstractContextManager[Any]:
            del pristine  # whoever gave the connection looks after it
            if not row.kind.database:
                refuse_database()
            return self._connection()

        return Context.of(
            job, deadline, lambda: row.cancel_requested_at is not None, connection, report
        )

    def _call(self, row: Row, ctx: Context) -> object:
        handler = self._handler(row)
        given = handler(ctx, row.args) if row.event is None else handler(ctx, row.args, row.event)
        if not inspect.iscoroutine(given):
            return given

        def left(tasks: list[str]) -> None:
            ctx.log.warning("left tasks behind, which were cancelled: %s", ", ".join(tasks))

        with closing(Coroutines()) as coroutines:
            return coroutines.run(given, left)

    def _handler(self, row: Row) -> Handler:
        name = row.kind.name
        if name in self._given:
            return self._given[name]
        if name not in self._found:
            self._found[name] = load_handler(row.kind, wants_event=row.event is not None)
        return self._found[name]
