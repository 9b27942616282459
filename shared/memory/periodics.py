"""Periodic jobs in memory: their next ticks, the jobs they started.

Before it: the application as data. After it: ordinary jobs. Ticks start when the runtime has been
started and something is run; the rules are those of shared.jobs.schedule.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from shared.errors import NotFound
from shared.jobs.inspect import PeriodicStatus
from shared.jobs.options import EnqueueOpts, checked_args
from shared.jobs.schedule import LONGEST_RUN
from shared.memory.course import Course
from shared.memory.rows import READY, SCHEDULED, Row, iso
from shared.memory.store import Store

LATE = 60.0  # seconds after which a tick that nobody started counts as missed
SHOWN = 5  # starts that a status tells


class Periodics:
    """The periodic jobs of a store; the caller holds its lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._courses: dict[str, Course] = store.courses

    def declare(self) -> None:
        """Take up what the application declares; what is known already keeps its next tick."""
        now = self._store.clock.wall()
        for periodic in self._store.app.periodics:
            known = self._courses.get(periodic.name)
            if known is not None:
                known.declared = periodic
                continue
            first = now if periodic.starts_at_once else periodic.schedule.next_after(now)
            self._courses[periodic.name] = Course(periodic, first)

    def tick(self, now: datetime) -> None:
        """Start what is due."""
        for course in self._courses.values():
            if course.next_at <= now:
                self._fire(course, now)

    def next_due(self) -> datetime | None:
        """When the next tick comes."""
        return min((course.next_at for course in self._courses.values()), default=None)

    def run(self, name: str) -> str:
        """Start an extra run; see shared.jobs.port.Inspector.run_periodic."""
        course = self._courses.get(name)
        if course is None:
            raise NotFound(
                f"periodic: expected the name of one that is declared; got {name[:63]!r}"
            )
        return str(self._start(course).id)

    def status(self) -> list[PeriodicStatus]:
        """How they go, by name."""
        return [_status(self._courses[name]) for name in sorted(self._courses)]

    def _fire(self, course: Course, now: datetime) -> None:
        schedule, due = course.declared.schedule, course.next_at
        course.next_at = schedule.next_after(now, due)
        gap = (schedule.next_after(due, due) - due).total_seconds()
        missed = (now - due).total_seconds() > min(LATE, gap)
        waits = bool(course.started) and course.started[-1].where in (READY, SCHEDULED)
        # The first tick ever cannot have been missed: nobody was there to start it.
        skipped = missed and course.declared.missed == "skip" and bool(course.started)
        if not waits and not skipped:
            self._start(course)

    def _start(self, course: Course) -> Row:
        now = self._store.clock.wall()
        kind = self._store.kind(course.declared.kind)
        limit = min(LONGEST_RUN, course.declared.schedule.shortest(now))
        options = EnqueueOpts(max_attempts=1, timeout=min(limit, kind.timeout or limit))
        text = checked_args(kind.name, course.declared.args)
        row, _ = self._store.add(kind, text, options)
        self._store.place(row)
        course.last_started_at = now
        course.started.append(row)
        return row


def _status(course: Course) -> PeriodicStatus:
    ended = (row for row in reversed(course.started) if row.answer().finished)
    last = next(ended, None)
    return PeriodicStatus(
        name=course.declared.name,
        kind=course.declared.kind,
        schedule=course.declared.schedule.describe(),
        next_at=iso(course.next_at),
        last_started_at=None if course.last_started_at is None else iso(course.last_started_at),
        last_result=None if last is None else last.state,
        last_error=None if last is None else last.log[-1].error,
        starts=tuple(row.job() for row in islice(reversed(course.started), SHOWN)),
    )
