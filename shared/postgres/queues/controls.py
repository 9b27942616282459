"""ADAPTER: stepping in by hand: cancel, retry, pause, resume.

Behind shared.postgres.inspection.inspector, which people and programs call, and behind a queue
process, which asks what it is to stop. The SQL functions (migration 0005) are the one
implementation of each transition; here they are called in batches of ids, each batch one short
transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement

MAX_WHY = 500  # characters
BATCH = 500  # jobs in one transaction


class Moved(NamedTuple):
    """What became of a job: its state now, whether that was our doing, who stood in the way."""

    job_id: int
    state: str
    changed: bool
    held_by: int | None = None


Move = Callable[[Connection, Sequence[int]], list[Moved]]


def cancel(conn: Connection, ids: Sequence[int]) -> list[Moved]:
    """End jobs that wait, ask the owners of running ones; ids that name no job are left out.

    Jobs that somebody else moves at this moment are waited for, one by one.

    Raises:
        DatabaseUnavailable: what was not told is not changed; try again.
    """
    moved = _cancel(conn, ids)
    for job_id in [job_id for job_id, state, _ in moved if state is None]:
        moved += _cancel(conn, [job_id])
    return [Moved(job_id, state, changed) for job_id, state, changed in moved if state is not None]


def _cancel(conn: Connection, ids: Sequence[int]) -> list[tuple[int, str | None, bool]]:
    with translated():
        rows: list[Any] = conn.execute(statement("controls/cancel"), {"ids": list(ids)}).fetchall()
    return rows


def retry(conn: Connection, ids: Sequence[int]) -> list[Moved]:
    """Put discarded, cancelled and scheduled jobs in line; ids that name no job are left out.

    Raises:
        DatabaseUnavailable: nothing was changed; try again.
    """
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("controls/retry"), {"ids": list(ids)}
        ).fetchall()
    return [Moved(*row) for row in rows]


def pause(conn: Connection, queue: str | None, kind: str | None) -> bool:
    """Have every claim skip a queue's or a kind's lanes; whether they were open before.

    Raises:
        NotFound: no such queue or kind.
        InvalidArguments: both given, or none.
    """
    with translated():
        row = conn.execute(statement("controls/pause"), {"queue": queue, "kind": kind}).fetchone()
    return bool(row and row[0])


def resume(conn: Connection, queue: str | None, kind: str | None) -> bool:
    """Open them again and wake who sleeps; whether they were paused.

    Raises:
        NotFound, InvalidArguments: as of pause.
    """
    with translated():
        row = conn.execute(statement("controls/resume"), {"queue": queue, "kind": kind}).fetchone()
    return bool(row and row[0])


def quarantine(conn: Connection, kind: str, why: str) -> bool:
    """Pause a kind that kills its children; whether it was not paused before.

    Args:
        conn: a queue process's.
        kind: its name.
        why: for people, at most 500 characters.
    """
    with translated():
        row = conn.execute(
            statement("controls/quarantine"), {"kind": kind, "why": why[:MAX_WHY]}
        ).fetchone()
    return bool(row and row[0])


def to_cancel(conn: Connection, epoch: int, queue: str) -> list[int]:
    """Ids of jobs of a queue that a process holds and whose end was asked for."""
    with translated():
        params = {"epoch": epoch, "queue": queue}
        rows = conn.execute(statement("controls/to_cancel"), params).fetchall()
    return [int(str(row[0])) for row in rows]


class Pause(NamedTuple):
    """What starts no jobs: a queue or a kind, its name, since when; why, if it was quarantined."""

    what: str
    name: str
    since: datetime
    quarantine: str | None


def paused(conn: Connection) -> list[Pause]:
    """What is paused."""
    with translated():
        rows: Sequence[Any] = conn.execute(statement("controls/paused")).fetchall()
    return [Pause(*row) for row in rows]
