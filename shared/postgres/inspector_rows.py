"""Rows of jobs and of the log as the port has them; and the bound that every look has.

Used by the parts of shared.postgres.inspector.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from psycopg.pq import TransactionStatus

from shared.jobs.inspect import Attempt, Job, Progress
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement


@contextmanager
def bounded(conn: Connection) -> Iterator[None]:
    """Look within one transaction, whose statements end after 2 s each and see one moment.

    Args:
        conn: in autocommit mode; within a look, this is a part of it.

    Raises:
        DatabaseUnavailable: not now, or it took too long.
    """
    within = conn.info.transaction_status != TransactionStatus.IDLE
    with translated(), conn.transaction():
        if not within:
            conn.execute(statement("inspector/moment"))
        conn.execute(statement("inspector/bound"))
        yield


def job_of(row: Any) -> Job:
    """A row of inspector/describe."""
    job_id, kind, queue, state, attempt, max_attempts, priority, created_at, run_at = row[:9]
    owner, tags, progress = row[9:]
    return Job(
        id=job_id,
        kind=kind,
        queue=queue,
        state=state,
        attempt=attempt,
        max_attempts=max_attempts,
        priority=priority,
        created_at=iso(created_at) or "",
        scheduled_at=iso(run_at),
        owner_id=owner,
        tags=tuple(tags),
        progress=progress_of(progress),
    )


def progress_of(stored: Mapping[str, Any] | None) -> Progress | None:
    """How far a job is, as `running` keeps it."""
    return None if stored is None else Progress(stored["n"], stored["of"])


def attempt_of(row: Any) -> Attempt:
    """A row of inspector/attempts."""
    run, attempt, outcome, state, error, cause, evidence, claimed, started, finished, _ = row
    times = (iso(claimed), iso(started), iso(finished) or "")
    return Attempt(run, attempt, outcome, state, error, cause, evidence, *times)


def iso(moment: datetime | None) -> str | None:
    """ISO 8601 text in UTC, to the millisecond."""
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")
