"""Everything that the memory adapter keeps, behind one lock, and the moves of a job.

Below jobs, inspector, runner and periodics, which are its faces. Must never call a handler: those
run without the lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from shared.app import App
from shared.errors import NotFound, UnknownKind
from shared.events.event import Event
from shared.jobs.inspect import Attempt
from shared.jobs.kinds import Kind
from shared.jobs.lookups import job_number
from shared.jobs.options import EnqueueOpts
from shared.jobs.states import FINAL
from shared.memory.clock import StoppedClock
from shared.memory.course import Course
from shared.memory.line import Line
from shared.memory.rows import ENDED, HELD, UNCOMMITTED, Row, iso
from shared.memory.uniques import Uniques, hold_of
from shared.notices.channels import FINAL as FINAL_CHANNEL
from shared.notices.waiters import Waiters


def unspread(seconds: float) -> float:
    """No jitter: a delay as it is."""
    return seconds


class Store:
    """The jobs of one application, and what is known of them.

    Args:
        app: its declarations, checked.
        clock: what time it is.
        jitter: spreads the delay after a failure; unspread by default.

    Attributes:
        lock: held around every look and every move.
        paused: queues and kinds, as (what, name), since when.
        courses: of periodic jobs, by name.
        expiring: jobs that are to start by some moment.
        closed_keys: concurrency keys, until when they are closed; None = until they are enabled.
        starts: of kinds with a rate: when their jobs started.
        outbox: events by id, with the jobs of their subscribers.
    """

    def __init__(
        self, app: App, clock: StoppedClock, jitter: Callable[[float], float] = unspread
    ) -> None:
        self.app = app.check()
        self.clock = clock
        self.jitter = jitter
        self.lock = threading.RLock()
        self.rows: dict[int, Row] = {}
        self.line = Line()
        self.uniques = Uniques()
        self.waiters = Waiters()
        self.paused: dict[tuple[str, str], datetime] = {}
        self.outbox: dict[str, tuple[Event, Mapping[str, str]]] = {}
        self.courses: dict[str, Course] = {}
        self.expiring: list[Row] = []
        self.closed_keys: dict[str, datetime | None] = {}
        self.starts: dict[str, list[datetime]] = {}
        self._ids = count(1)
        self._events = count(1)

    # ── looking ─────────────────────────────────────────────────────────────────────────────────

    def kind(self, name: str) -> Kind:
        """A declared kind.

        Raises:
            UnknownKind: there is none of that name.
        """
        kind = self.app.all_kinds.get(name)
        if kind is None:
            raise UnknownKind(
                f"kind: expected a declared kind; got {name!r}; declare it in the application"
            )
        return kind

    def row(self, job_id: str | int) -> Row:
        """A committed job.

        Raises:
            NotFound: there is none of that id.
        """
        row = self.rows.get(job_number(job_id))
        if row is None or row.where == UNCOMMITTED:
            raise NotFound(f"job: expected the id of one that is kept; got {str(job_id)[:40]!r}")
        return row

    def committed(self) -> Iterable[Row]:
        """Every committed job, newest first."""
        return (row for row in reversed(self.rows.values()) if row.where != UNCOMMITTED)

    def is_paused(self, row: Row) -> bool:
        """Whether its queue or its kind is paused."""
        lanes = (("queue", row.kind.queue), ("kind", row.kind.name))
        return any(lane in self.paused for lane in lanes)

    def holders(self, row: Row) -> list[Row]:
        """Jobs that run with the same concurrency key."""
        key = row.opts.concurrency_key
        if key is None:
            return []
        return [
            other
            for other in self.rows.values()
            if other.where == HELD and other.opts.concurrency_key == key
        ]

    def next_event(self) -> int:
        """The number of a new event."""
        return next(self._events)

    # ── moves ───────────────────────────────────────────────────────────────────────────────────

    def add(
        self, kind: Kind, text: str, opts: EnqueueOpts, event: Event | None = None
    ) -> tuple[Row, bool]:
        """Make a job that nobody sees yet: (it, True), or (the one that keeps it out, False)."""
        now = self.clock.wall()
        declared = self.app.all_queues[kind.queue].timeout if kind.timeout is None else kind.timeout
        row = Row(
            id=next(self._ids),
            kind=kind,
            text=text,
            opts=opts,
            max_attempts=opts.max_attempts or kind.max_attempts,
            timeout=opts.timeout or declared,
            created_at=now,
            event=event,
        )
        row.hold = hold_of(kind.name, row.args, opts.unique, now)
        holder = self.uniques.holder(row.hold)
        if holder is not None:
            return holder, False
        self.uniques.take(row)
        self.rows[row.id] = row
        return row, True

    def place(self, row: Row) -> None:
        """Put a new job where it waits."""
        now = self.clock.wall()
        if row.opts.expires_at is not None:
            self.expiring.append(row)
        if row.opts.run_at is not None and row.opts.run_at > now:
            self.line.schedule(row, row.opts.run_at, "delay")
        else:
            self.line.join(row, now)

    def forget(self, row: Row) -> None:
        """Take a new job back."""
        self.uniques.forget(row)
        del self.rows[row.id]

    def again(self, row: Row, delay: float, why: str) -> None:
        """Let a job wait for another run."""
        now = self.clock.wall()
        if delay > 0:
            self.line.schedule(row, now + timedelta(seconds=delay), why)
        else:
            self.line.join(row, now)

    def write(self, row: Row, outcome: str, state: str, **more: Any) -> None:
        """Append to the log; a final state ends the job and tells who waits for it."""
        entry: dict[str, Any] = {
            "run": row.run,
            "attempt": row.attempt,
            "outcome": outcome,
            "state": state,
            "error": None,
            "cause": None,
            "evidence": {},
            "claimed_at": None,
            "started_at": None,
            "finished_at": iso(self.clock.wall()),
        }
        row.log.append(Attempt(**{**entry, **more}))
        if state in FINAL:
            row.where = ENDED
            self.waiters.heard(FINAL_CHANNEL, str(row.id))
