"""Process rows: who runs, since when, how far along. One row per life of one process (its epoch).

Every program registers before it works and beats every 2 s. The figures are the design's: beat
2 s, self-fence 10 s after the last acknowledged beat was sent, lease 15 s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.statements import statement
from shared.services.process import ProcessIdentity

BEAT = 2.0
SELF_FENCE = 10.0
LEASE = 15.0


@dataclass(frozen=True, slots=True)
class Registration:
    """What a process says of itself when it starts."""

    role: str
    slot: str
    queue: str | None
    version: str
    connections: int
    children: int
    kinds: tuple[str, ...] = ()


def register(conn: Connection, who: ProcessIdentity, what: Registration) -> int:
    """Insert a process row; return its epoch."""
    with translated():
        params = {**asdict(who), **asdict(what), "kinds": list(what.kinds)}
        row = conn.execute(statement("processes/register"), params).fetchone()
    if row is None or not isinstance(row[0], int):
        raise RuntimeError("insert … returning gave no row")
    return row[0]


def beat(
    conn: Connection, epoch: int, phase: str, address: str | None, backend_pids: list[int]
) -> bool:
    """Write a beat; False = this life was declared dead, and must fence itself."""
    params = {
        "epoch": epoch,
        "phase": phase,
        "address": address,
        "backend_pids": backend_pids,
    }
    with translated():
        return conn.execute(statement("processes/beat"), params).fetchone() is not None


def stopped(conn: Connection, epoch: int) -> None:
    """Write that the process ended in order."""
    with translated():
        conn.execute(statement("processes/stop"), {"epoch": epoch})


def held(
    conn: Connection, who: ProcessIdentity, pids: Sequence[int], limit: int
) -> list[tuple[str, str]]:
    """(id, kind) of the oldest jobs that processes of this machine hold.

    Args:
        conn: in autocommit mode.
        who: any process of the machine and its namespace of process ids.
        pids: of the processes.
        limit: of jobs.
    """
    params = {
        "boot_id": who.boot_id,
        "pid_namespace": who.pid_namespace,
        "pids": list(pids),
        "limit": limit,
    }
    with translated():
        rows = conn.execute(statement("processes/held"), params).fetchall()
    return [(str(job_id), str(kind)) for job_id, kind in rows]


def processes(conn: Connection) -> list[Mapping[str, Any]]:
    """Every process row, newest life of a slot first; `beat_age` in seconds."""
    with translated(), conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return list(cursor.execute(statement("processes/list")).fetchall())
