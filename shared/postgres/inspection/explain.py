"""Gathers the facts of where a job is; shared.jobs.explain says them. Part of the inspector."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from psycopg.rows import dict_row

from shared.jobs.evidence import brief
from shared.jobs.explain import ENDED, MANY, RUNNING, explain
from shared.jobs.inspect import Explanation
from shared.jobs.states import PENDING, waiting_state
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.looks import iso
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.rows import progress_of


def explanation(conn: Connection, number: int) -> Explanation | None:
    """Why a job stands where it stands; None = there is no such job."""
    with conn.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(
            statement("inspector/explain"), {"id": number, "many": MANY}
        ).fetchone()
    if row is None:
        return None
    facts = {name: iso(v) if isinstance(v, datetime) else v for name, v in row.items()}
    last = facts.pop("last_state")
    facts["evidence"] = brief(row["evidence"])
    progress = progress_of(row["progress"])
    facts["progress"] = None if progress is None else str(progress)
    return explain({"state": _state(facts, last), **facts})


def _state(facts: dict[str, Any], last: str | None) -> str:
    if facts["where"] == ENDED:
        return last or PENDING
    return RUNNING if facts["where"] == RUNNING else waiting_state(facts["attempt"])
