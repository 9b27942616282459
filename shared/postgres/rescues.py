"""ADAPTER: taking jobs back from owners that are dead, and from nobody else.

An owner is dead when it has no process row, when it said that it stopped, when it lived on this
host and its process is gone, or when its beat is older than the lease and 2 s. The age of a run
never counts. A timer of every queue process calls it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.processes import LEASE
from shared.postgres.statements import statement
from shared.services.process import ProcessIdentity, is_alive

MARGIN = 2.0  # seconds past the lease, for clocks read at different moments of one statement


def dead_owners(conn: Connection, own_epoch: int) -> dict[int, str]:
    """Epochs that hold running jobs and are dead, with the reason."""
    with translated():
        rows = conn.execute(statement("rescues/owners")).fetchall()
    judged = ((int(str(row[0])), _reason(row[1:])) for row in rows)
    return {epoch: reason for epoch, reason in judged if reason and epoch != own_epoch}


def rescue(conn: Connection, dead: dict[int, str]) -> dict[str, int]:
    """Take back what dead owners hold; return how many jobs by reason."""
    by_reason: defaultdict[str, list[int]] = defaultdict(list)
    for epoch, reason in dead.items():
        by_reason[reason].append(epoch)
    counts = {}
    for reason, epochs in by_reason.items():
        with translated():
            row = conn.execute(statement("rescues/rescue"), {"epochs": epochs}).fetchone()
        counts[reason] = int(str(row[0])) if row else 0
    return counts


def _reason(row: tuple[Any, ...]) -> str | None:
    host, boot_id, pid_namespace, pid, pid_started, phase, beat_age = row
    if host is None:
        return "unregistered"
    if phase == "stopped":
        return "stopped"
    if not is_alive(ProcessIdentity(host, boot_id, pid_namespace, pid, pid_started)):
        return "dead"
    return "lease" if beat_age > LEASE + MARGIN else None
