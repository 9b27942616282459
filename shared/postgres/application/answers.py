"""ADAPTER: reading what callers wait for, many at once: how jobs stand, where events went.

Used at registration, after each wake and on the slow poll, by application processes
(shared.postgres.application.waits) and by the listener (one read for all callers that were woken
together).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from shared.errors import WeirkeeperError
from shared.jobs.port import Wait
from shared.jobs.states import FINAL
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import translated
from shared.postgres.driver.prepared import as_array, prepared
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.rows import progress_of

T = TypeVar("T")
Fanout = Mapping[str, str] | None  # job id by subscription; None = not fanned out yet


class Answers:
    """Reads through one connection, opened when needed and again when lost; for one thread.

    Args:
        url: libpq URI.
        name: of the session.
        on_connect: called after each connect.
    """

    def __init__(self, url: str, name: str, on_connect: Callable[[], None] = lambda: None) -> None:
        self._url = url
        self._name = name
        self._on_connect = on_connect
        self._conn: Connection | None = None

    def open(self) -> None:
        """Connect, and have jobs' read planned: of a first look, a quarter goes into the plan.

        Raises:
            DatabaseUnavailable: not now.
        """
        self._read(lambda conn: _jobs(conn, ()))

    def jobs(self, ids: Sequence[str]) -> dict[str, Wait]:
        """How jobs stand, by id; an unknown one is left out.

        Args:
            ids: decimal numbers of 64 bits.

        Raises:
            DatabaseUnavailable: ask again.
        """
        return self._read(lambda conn: _jobs(conn, ids))

    def fanouts(self, ids: Sequence[str]) -> dict[str, Fanout]:
        """Where events went, by id; an unknown one is left out.

        Args:
            ids: uuids.

        Raises:
            DatabaseUnavailable: ask again.
        """
        return self._read(lambda conn: _fanouts(conn, ids))

    def close(self) -> None:
        """End the session; harmless when repeated."""
        if self._conn is not None:
            self._conn.close()
        self._conn = None

    def _read(self, read: Callable[[Connection], T]) -> T:
        try:
            if self._conn is None or self._conn.closed:
                self._conn = connect(self._url, f"{self._name} reads", Use.ANSWERS)
                self._on_connect()
            with translated():
                return read(self._conn)
        except WeirkeeperError:
            self.close()
            raise


def _jobs(conn: Connection, ids: Sequence[str]) -> dict[str, Wait]:
    rows = prepared(conn, "waits/jobs").rows({"ids": as_array(map(int, ids))})
    return {
        job_id: Wait(state, state in FINAL, result, progress_of(progress))
        for job_id, state, result, progress in rows
    }


def _fanouts(conn: Connection, ids: Sequence[str]) -> dict[str, Fanout]:
    rows: Sequence[Any] = conn.execute(statement("waits/fanouts"), {"ids": list(ids)}).fetchall()
    return {event_id: _by_subscription(jobs) for event_id, jobs in rows}


def _by_subscription(jobs: Mapping[str, int | None] | None) -> Fanout:
    if jobs is None:
        return None
    return {name: str(job_id) for name, job_id in jobs.items() if job_id is not None}
