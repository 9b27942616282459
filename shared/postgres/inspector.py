"""ADAPTER of the port Inspector: what people and programs see of jobs.

Lists go by keyset (newest id first) over the table that a state stands for, and never read args;
so a page costs the same whatever the history. Ids are decimal strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from shared.errors import InvalidArguments, NotFound
from shared.jobs.port import EVERY_JOB, Attempt, Job, JobFilter
from shared.jobs.states import CANCELLED, COMPLETED, DISCARDED, PENDING, RETRYABLE, RUNNING
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement

_WAITING = (PENDING, RETRYABLE)
_ENDED = (DISCARDED, CANCELLED)


class PostgresInspector:
    """Looks at jobs through one connection in autocommit mode."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    def list(
        self, wanted: JobFilter = EVERY_JOB, *, limit: int = 50, before: str | None = None
    ) -> list[Job]:
        """Newest jobs first; see shared.jobs.port.Inspector.list."""
        state = wanted.state
        params = {
            "kind": wanted.kind,
            "state": state,
            "limit": limit,
            "before": None if before is None else _before(before),
            "tried": state == RETRYABLE,
            "completed": state == COMPLETED,
        }
        with translated():
            rows: Sequence[Any] = self._conn.execute(_candidates(state), params).fetchall()
            found = self._described([row[0] for row in rows])
        # A job that moved on between the two reads is no longer of the state asked for.
        return [job for job in found if state in (None, job.state)]

    def get(self, job_id: str) -> Job:
        """One job; see shared.jobs.port.Inspector.get."""
        number = _number(job_id)
        with translated():
            found = self._described([number])
            payload: Any = self._conn.execute(
                statement("inspector/payload"), {"id": number}
            ).fetchone()
            rows: Sequence[Any] = self._conn.execute(
                statement("inspector/attempts"), {"id": number}
            ).fetchall()
        if not found or payload is None:
            raise NotFound(f"job: expected the id of one that is kept; got {job_id!r}")
        return replace(
            found[0],
            args=payload[0],
            attempts=tuple(_attempt(row) for row in rows),
            result=rows[-1][-1] if rows else None,
        )

    def _described(self, ids: Sequence[int]) -> Sequence[Job]:
        rows: Sequence[Any] = self._conn.execute(
            statement("inspector/describe"), {"ids": list(ids)}
        ).fetchall()
        return [_job(row) for row in rows]


def _candidates(state: str | None) -> Any:
    if state in _WAITING:
        return statement("inspector/waiting")
    if state == RUNNING:
        return statement("inspector/running")
    if state in _ENDED:
        return statement("inspector/ended")
    return statement("inspector/newest")


def _job(row: Any) -> Job:
    job_id, kind, queue, state, attempt, max_attempts, priority, created_at, run_at = row
    return Job(
        id=job_id,
        kind=kind,
        queue=queue,
        state=state,
        attempt=attempt,
        max_attempts=max_attempts,
        priority=priority,
        created_at=_iso(created_at) or "",
        scheduled_at=_iso(run_at),
    )


def _attempt(row: Any) -> Attempt:
    run, attempt, outcome, state, error, cause, evidence, claimed, started, finished, _ = row
    shown: Mapping[str, Any] = evidence
    times = (_iso(claimed), _iso(started), _iso(finished) or "")
    return Attempt(run, attempt, outcome, state, error, cause, shown, *times)


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")


def _number(job_id: str) -> int:
    """An id as the database has it; what cannot be one names no job."""
    if not (len(job_id) <= 19 and job_id.isascii() and job_id.isdigit() and int(job_id) < 2**63):
        raise NotFound(f"job: expected a decimal id; got {job_id[:40]!r}")
    return int(job_id)


def _before(job_id: str) -> int:
    try:
        return _number(job_id)
    except NotFound as error:
        raise InvalidArguments(f"before: expected the id of a job; got {job_id[:40]!r}") from error
