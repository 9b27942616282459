"""Drain rows: how each stop went, kept after the process is gone (docs/operations.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import psycopg

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement


def drained(
    conn: Connection, epoch: int, phases: Mapping[str, float], jobs: Mapping[str, int]
) -> None:
    """Write how a stop went; the first writing of an epoch counts.

    Args:
        conn: in autocommit mode.
        epoch: the process's.
        phases: seconds by phase, in order; their sum is how long the stop has taken so far.
        jobs: what became of the jobs that the stop found, by result.
    """
    params = {
        "epoch": epoch,
        "seconds": sum(phases.values()),
        "phases": json.dumps(phases),
        "jobs": json.dumps(jobs),
    }
    with translated():
        conn.execute(statement("processes/drained"), params)


def drains(conn: Connection, slot: str | None = None, limit: int = 20) -> list[Mapping[str, Any]]:
    """How the last stops went, newest first, each with some of the jobs that it interrupted.

    Args:
        conn: in autocommit mode.
        slot: of this slot alone; None = of all.
        limit: of stops.
    """
    params = {"slot": slot, "limit": limit}
    with translated(), conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
        return list(cursor.execute(statement("processes/drains"), params).fetchall())
