"""Process rows: who runs, since when, how far along. One row per life of one process (its epoch).

Every program registers before it works and beats every 2 s. The figures are the design's: beat
2 s, self-fence 10 s after the last acknowledged beat was sent, lease 15 s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from shared.config.installation import schema_name
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.services.process import ProcessIdentity

BEAT = 2.0
SELF_FENCE = 10.0
LEASE = 15.0
SILENT = LEASE + 2.0  # seconds until what a silent process holds is ended, as its jobs are rescued


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
    generation: str = ""
    queues: Mapping[str, int] | None = None  # children by queue, of a process with several


@dataclass(frozen=True, slots=True)
class Heard:
    """What a beat is answered.

    Attributes:
        alive: this life goes on; else it was declared dead, and must fence itself.
        rest: it is asked to start nothing more.
        ended: sessions that were ended because their processes are silent.
    """

    alive: bool
    rest: bool = False
    ended: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A process that was asked to rest, or to work again."""

    epoch: int
    slot: str
    host: str
    generation: str


def register(conn: Connection, who: ProcessIdentity, what: Registration) -> int:
    """Insert a process row; return its epoch."""
    with translated():
        queues = None if what.queues is None else json.dumps(dict(what.queues))
        params = {**asdict(who), **asdict(what), "kinds": list(what.kinds), "queues": queues}
        row = conn.execute(statement("processes/register"), params).fetchone()
    if row is None or not isinstance(row[0], int):
        raise RuntimeError("insert … returning gave no row")
    return row[0]


def beat(
    conn: Connection, epoch: int, phase: str, address: str | None, backend_pids: list[int]
) -> Heard:
    """Write a beat, end the sessions of who is silent; return what others want of this process."""
    params = {
        "epoch": epoch,
        "phase": phase,
        "address": address,
        "backend_pids": backend_pids,
        "lease": SILENT,
        "ours": f"{schema_name()} ",  # how shared.postgres.driver.connect names every session
    }
    with translated():
        row: Any = conn.execute(statement("processes/beat"), params).fetchone()
    return Heard(alive=False) if row is None else Heard(True, bool(row[0]), int(row[1]))


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


def ask_to_rest(conn: Connection, stays: str, only: str | None = None) -> list[Asked]:
    """Ask the queue processes and relays of other generations to start nothing more.

    Args:
        conn: in autocommit mode.
        stays: the generation that goes on working.
        only: ask this generation alone; None = every other.

    Returns:
        Those that are asked now; each hears it with its next beat.
    """
    with translated():
        rows = conn.execute(
            statement("processes/ask_to_rest"), {"stays": stays, "only": only}
        ).fetchall()
    return [_asked(row) for row in rows]


def ask_to_work(conn: Connection) -> list[Asked]:
    """Take back what `ask_to_rest` asked for; return those that work again."""
    with translated():
        rows = conn.execute(statement("processes/ask_to_work")).fetchall()
    return [_asked(row) for row in rows]


def busy(conn: Connection, epochs: Sequence[int]) -> dict[int, int]:
    """How many jobs each of these processes holds; those that hold none are left out."""
    with translated():
        rows = conn.execute(statement("processes/busy"), {"epochs": list(epochs)}).fetchall()
    return {int(str(epoch)): int(str(number)) for epoch, number in rows}


def needed_by_all(conn: Connection) -> int:
    """Connections that all living processes, of all hosts and generations, may open together."""
    with translated():
        row = conn.execute(statement("processes/budget")).fetchone()
    return int(str(row[0])) if row else 0


def _asked(row: tuple[Any, ...]) -> Asked:
    return Asked(int(row[0]), str(row[1]), str(row[2]), str(row[3]))
