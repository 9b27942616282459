"""Rows of jobs and of the log as the port has them.

Used by the parts of shared.postgres.inspection.inspector, and by those who tell of a job's
progress.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.inspect import Attempt, Job, Progress
from shared.postgres.driver.looks import iso


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
