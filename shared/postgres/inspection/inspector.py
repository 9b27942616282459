"""ADAPTER of the port Inspector: what people and programs see of jobs, and how they step in.

Pages are found by `pages`, overviews and explanations by their own files, transitions are
made by controls; here they meet the port. Ids are decimal strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.jobs.inspect import Explanation, Job, JobFilter, Overview, PeriodicStatus
from shared.jobs.lookups import check_name, job_number, page_before, page_limit
from shared.jobs.port import EVERY_JOB, untold
from shared.jobs.states import CANCELLED, COMPLETED, DISCARDED, PENDING, RETRYABLE, RUNNING
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.looks import bounded
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.explain import explanation
from shared.postgres.inspection.overview import overviews
from shared.postgres.inspection.pages import FAR, Pages
from shared.postgres.inspection.rows import attempt_of, job_of
from shared.postgres.queues import controls
from shared.postgres.queues.controls import Move, Moved
from shared.postgres.queues.periodic import periodic_status, run_periodic


class PostgresInspector:
    """Looks at jobs and steps in, through one connection in autocommit mode; for one thread."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self._pages = Pages(conn)

    def overview(self, kind: str | None = None) -> Sequence[Overview]:
        """How declared kinds stand; see shared.jobs.port.Inspector.overview."""
        check_name("kind", kind)
        with bounded(self._conn):
            return overviews(self._conn, kind)

    def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """Newest jobs first; see shared.jobs.port.Inspector.list.

        A page may be shorter than `limit`; one without jobs is the end.
        """
        below, limit = page_before(before), page_limit(limit)
        found: list[Job] = []
        looks = 0
        for ids in self._pages.of(wanted, below, limit):
            found += self._described(ids, wanted.state)
            looks += 1
            if len(found) >= limit or looks >= FAR:
                break
        if looks >= FAR and not found:
            raise InvalidArguments(
                "filter: expected one that fits a job not too far back; got none among the newest; "
                "name a kind or a state beside it"
            )
        return found[:limit]

    def get(self, job_id: str) -> Job:
        """One job; see shared.jobs.port.Inspector.get."""
        number = job_number(job_id)
        with bounded(self._conn):
            found = self._described([number])
            payload: Any = self._conn.execute(
                statement("inspector/payload"), {"id": number}
            ).fetchone()
            rows: Sequence[Any] = self._conn.execute(
                statement("inspector/attempts"), {"id": number}
            ).fetchall()
        if not found or payload is None:
            raise _unknown(job_id)
        log = tuple(attempt_of(row) for row in rows)
        return replace(
            found[0],
            args=payload[0],
            command=tuple(payload[1]),
            attempts=log,
            result=rows[-1][-1] if rows else None,
        )

    def explain(self, job_id: str) -> Explanation:
        """Why a job stands where it stands; see shared.jobs.port.Inspector.explain."""
        number = job_number(job_id)
        with bounded(self._conn):
            found = explanation(self._conn, number)
        if found is None:
            raise _unknown(job_id)
        return found

    def retry(self, job_id: str) -> str:
        """Run a job once more; see shared.jobs.port.Inspector.retry."""
        moved = self._one(controls.retry, job_id)
        if moved.held_by is not None:
            raise Conflict(
                f"retry of job {job_id}: expected that no other job holds its uniqueness; got "
                f"job {moved.held_by}; wait for that one, or cancel it first",
                str(moved.held_by),
            )
        if moved.state == COMPLETED:
            raise Conflict(
                f"retry of job {job_id}: expected one that is discarded, cancelled or waits; got a "
                "completed one; enqueue another"
            )
        return moved.state

    def cancel(self, job_id: str) -> str:
        """End a job; see shared.jobs.port.Inspector.cancel."""
        return self._one(controls.cancel, job_id).state

    def retry_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Retry discarded and cancelled jobs; see shared.jobs.port.Inspector.retry_many."""
        return self._many(controls.retry, wanted, (DISCARDED, CANCELLED), told)

    def cancel_many(self, wanted: JobFilter, *, told: Callable[[int], None] = untold) -> int:
        """Cancel waiting and running jobs; see shared.jobs.port.Inspector.cancel_many."""
        return self._many(controls.cancel, wanted, (PENDING, RETRYABLE, RUNNING), told)

    def pause(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start no more jobs of a queue or kind; see shared.jobs.port.Inspector.pause."""
        check_name("queue", queue)
        check_name("kind", kind)
        controls.pause(self._conn, queue, kind)

    def resume(self, *, queue: str | None = None, kind: str | None = None) -> None:
        """Start them again; see shared.jobs.port.Inspector.resume."""
        check_name("queue", queue)
        check_name("kind", kind)
        controls.resume(self._conn, queue, kind)

    def periodic(self) -> Sequence[PeriodicStatus]:
        """How periodic jobs go; see shared.jobs.port.Inspector.periodic."""
        return periodic_status(self._conn, self._described)

    def run_periodic(self, name: str) -> str:
        """Enqueue an extra run; see shared.jobs.port.Inspector.run_periodic."""
        check_name("periodic", name)
        return run_periodic(self._conn, name)

    def _one(self, move: Move, job_id: str) -> Moved:
        moved = move(self._conn, [job_number(job_id)])
        if not moved:
            raise _unknown(job_id)
        return moved[0]

    def _many(
        self, move: Move, wanted: JobFilter, states: Sequence[str], told: Callable[[int], None]
    ) -> int:
        """Move every job that fits when it is come to; what is enqueued meanwhile may be missed."""
        self._pages.check(wanted)
        total = 0
        for state in states if wanted.state is None else {wanted.state}.intersection(states):
            for ids in self._pages.of(replace(wanted, state=state), None, controls.BATCH):
                changed = sum(moved.changed for moved in move(self._conn, ids))
                total += changed
                if changed:
                    told(total)
        return total

    def _described(self, ids: Sequence[int], state: str | None = None) -> Sequence[Job]:
        """Jobs as they stand; one that moved on between two reads may be of another state."""
        if not ids:
            return []
        with bounded(self._conn):
            rows: Sequence[Any] = self._conn.execute(
                statement("inspector/describe"), {"ids": list(ids)}
            ).fetchall()
        return [job for job in map(job_of, rows) if state in (None, job.state)]


def _unknown(job_id: str) -> NotFound:
    return NotFound(f"job: expected the id of one that is kept; got {job_id!r}")
