"""How far events came: recorded → fanned out → job finished, by the database's own clock.

Read by the demo and by measurements, after the fact; nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement


@dataclass(frozen=True, slots=True)
class Journey:
    """One event's way to a subscription's job.

    Attributes:
        relay_pass: names the relay transaction that fanned it out; None: not yet.
        job_id: of the subscription; None: not yet, or it does not want the event.
        fanned_out: seconds from the record to the fan-out.
        finished: seconds from the record until the job completed.
    """

    event_id: str
    relay_pass: str | None
    job_id: str | None
    fanned_out: float | None
    finished: float | None


def journeys(conn: Connection, event_ids: Sequence[str], subscription: str) -> list[Journey]:
    """Journeys of events that are kept, in no order.

    Args:
        conn: any session.
        event_ids: uuids.
        subscription: whose job is asked for.
    """
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("journeys/of_events"), {"ids": list(event_ids), "subscription": subscription}
        ).fetchall()
    return [Journey(*row) for row in rows]
