"""ADAPTER: taking jobs back from owners that are dead, and from nobody else.

An owner is dead when it has no process row, when it said that it stopped, when it lived on this
host and its process is gone, or when its beat is older than the lease and 2 s. The age of a run
never counts. A timer of every queue process calls it.

Beats bear the time of the database's clock, which may be set: an hour forward, and every beat is
old until the next one; an hour back, and one that is not followed by another stays young for that
hour. So who looks again and again also measures by its own clock for how long a beat was the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from shared.clock import SYSTEM, Clock
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.processes.registry import BEAT, LEASE
from shared.services.process import ProcessIdentity, is_alive

MARGIN = 2.0  # seconds past the lease, for clocks read at different moments of one statement
SEEN = 2 * BEAT  # seconds that we must have seen a beat be the last, however old it looks


class Beats:
    """The last beats of others, and since when we have seen them.

    Args:
        clock: ours.
    """

    def __init__(self, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._seen: dict[int, tuple[float, float]] = {}

    def silent(self, ages: Mapping[int, tuple[float, float]]) -> set[int]:
        """Which epochs are silent for longer than the lease.

        Args:
            ages: by epoch, seconds since its last beat and the moment of that beat, both by the
                database's clock.
        """
        now = self._clock.monotonic()
        seen = {
            epoch: known if known is not None and known[0] == beat else (beat, now)
            for epoch, (_, beat) in ages.items()
            for known in [self._seen.get(epoch)]
        }
        self._seen = seen
        long = LEASE + MARGIN
        return {
            epoch
            for epoch, (age, _) in ages.items()
            if now - seen[epoch][1] >= (SEEN if age > long else long)
        }


def dead_owners(conn: Connection, own_epoch: int, beats: Beats) -> dict[int, str]:
    """Epochs that hold running jobs and are dead, with the reason.

    Args:
        conn: to the database.
        own_epoch: never dead.
        beats: what was seen of others' before.
    """
    with translated():
        rows: list[Any] = conn.execute(statement("rescues/owners")).fetchall()
    others = {int(row[0]): row[1:] for row in rows if int(row[0]) != own_epoch}
    ages = {epoch: (row[-2], row[-1]) for epoch, row in others.items() if row[0] is not None}
    silent = beats.silent(ages)
    judged = {
        epoch: _reason(row) or ("lease" if epoch in silent else None)
        for epoch, row in others.items()
    }
    return {epoch: reason for epoch, reason in judged.items() if reason}


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
    host, boot_id, pid_namespace, pid, pid_started, phase, *_ = row
    if host is None:
        return "unregistered"
    if phase == "stopped":
        return "stopped"
    if not is_alive(ProcessIdentity(host, boot_id, pid_namespace, pid, pid_started)):
        return "dead"
    return None
