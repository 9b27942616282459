"""ADAPTER of the port Inspector, in memory: looks at jobs, and steps in by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.jobs.inspect import Explanation, Job, JobFilter, Overview, PeriodicStatus
from shared.jobs.lookups import check_name, page_before, page_limit
from shared.jobs.port import EVERY_JOB, untold
from shared.jobs.states import CANCELLED, DISCARDED, STATES
from shared.memory import moves
from shared.memory.explain import explain
from shared.memory.matches import check, matches
from shared.memory.periodics import Periodics
from shared.memory.rows import READY, Row
from shared.memory.store import Store


class MemoryInspector:
    """Looks at a store."""

    def __init__(self, store: Store, periodics: Periodics) -> None:
        self._store = store
        self._periodics = periodics

    def overview(self, kind: str | None = None) -> Sequence[Overview]:
        """How kinds stand; see shared.jobs.port.Inspector.overview."""
        check_name("kind", kind)
        with self._store.lock:
            return [
                self._overview(name)
                for name in sorted(self._store.app.all_kinds)
                if kind in (None, name)
            ]

    def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """Newest jobs first; see shared.jobs.port.Inspector.list."""
        below, limit = page_before(before), page_limit(limit)
        with self._store.lock:
            older = (r for r in self._wanted(wanted) if below is None or r.id < below)
            return [row.job() for row in islice(older, limit)]

    def get(self, job_id: str) -> Job:
        """One job; see shared.jobs.port.Inspector.get."""
        with self._store.lock:
            return self._store.row(job_id).job(whole=True)

    def explain(self, job_id: str) -> Explanation:
        """Why it stands where it stands; see shared.jobs.port.Inspector.explain."""
        with self._store.lock:
            return explain(self._store, self._store.row(job_id))

    def retry(self, job_id: str) -> str:
        """Run a job once more; see shared.jobs.port.Inspector.retry."""
        with self._store.lock:
            row = self._store.row(job_id)
            moves.retry(self._store, row)
            return row.state

    def cancel(self, job_id: str) -> str:
        """End a job; see shared.jobs.port.Inspector.cancel."""
        with self._store.lock:
            row = self._store.row(job_id)
            moves.cancel(self._store, row)
            return row.state

    def retry_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Retry many; see shared.jobs.port.Inspector.retry_many."""
        with self._store.lock:
            rows = [r for r in self._wanted(wanted) if r.state in (DISCARDED, CANCELLED)]
            total = sum(map(self._retried, rows))
        if total:
            told(total)
        return total

    def cancel_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Cancel many; see shared.jobs.port.Inspector.cancel_many."""
        with self._store.lock:
            total = sum(moves.cancel(self._store, row) for row in [*self._wanted(wanted)])
        if total:
            told(total)
        return total

    def pause(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start no more; see shared.jobs.port.Inspector.pause."""
        with self._store.lock:
            self._store.paused.setdefault(self._lane(queue, kind), self._store.clock.wall())

    def resume(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start again; see shared.jobs.port.Inspector.resume."""
        with self._store.lock:
            self._store.paused.pop(self._lane(queue, kind), None)

    def periodic(self) -> Sequence[PeriodicStatus]:
        """How periodic jobs go; see shared.jobs.port.Inspector.periodic."""
        with self._store.lock:
            return self._periodics.status()

    def run_periodic(self, name: str) -> str:
        """Start an extra run; see shared.jobs.port.Inspector.run_periodic."""
        check_name("periodic", name)
        with self._store.lock:
            return self._periodics.run(name)

    def _wanted(self, wanted: JobFilter) -> Iterable[Row]:
        check(self._store.app, wanted)
        return (row for row in self._store.committed() if matches(row, wanted))

    def _overview(self, name: str) -> Overview:
        rows = [row for row in self._store.committed() if row.kind.name == name]
        kind, now = self._store.app.all_kinds[name], self._store.clock.wall()
        waiting = [row.ready_at for row in rows if row.where == READY and row.ready_at]
        return Overview(
            kind=name,
            queue=kind.queue,
            counts={state: sum(row.state == state for row in rows) for state in STATES},
            oldest_pending_age=(now - min(waiting)).total_seconds() if waiting else None,
            paused=bool({("queue", kind.queue), ("kind", name)} & {*self._store.paused}),
        )

    def _retried(self, row: Row) -> bool:
        try:
            return moves.retry(self._store, row)
        except Conflict:
            return False

    def _lane(self, queue: str | None, kind: str | None) -> tuple[str, str]:
        check_name("queue", queue)
        check_name("kind", kind)
        if (queue is None) == (kind is None):
            raise InvalidArguments(
                "pause: expected a queue or a kind; got both or none; name exactly one"
            )
        what, name = ("queue", queue or "") if kind is None else ("kind", kind)
        known = self._store.app.all_queues if what == "queue" else self._store.app.all_kinds
        if name not in known:
            raise NotFound(f"{what}: expected a declared one; got {name!r}; correct the name")
        return what, name
