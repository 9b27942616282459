"""Whether a slot's process lives and its loops turn, as its files tell: never the database.

Stands after `series` (a process writes the moment of each turn) and before `weirkeeper health`,
which probes use. A process that waits for a database turns, too; one that hangs does not.
"""

from __future__ import annotations

from pathlib import Path

from shared.clock import SYSTEM
from shared.telemetry.slotfile import Damaged, entries
from shared.telemetry.slots import is_live

AGES = "weirkeeper_loop_age_seconds"  # the file holds the moment of the last turn
LATE = 90.0  # seconds: longer than a statement, a failing relay's pause, or the watchman's patience


def live_slots(folder: Path) -> list[str]:
    """Slots of HOME/metrics that live processes hold."""
    slots = sorted(path.stem for path in folder.glob("*.lock"))
    return [slot for slot in slots if is_live(folder, slot)]


def hanging(folder: Path, slot: str) -> list[str]:
    """Loops of a slot's process that have not turned for LATE seconds; none before their first."""
    now = SYSTEM.monotonic()
    found = []
    for path in folder.glob(f"gauge*_{slot}.db"):
        try:
            read = entries(path)
        except (Damaged, OSError):
            continue  # its process makes it anew
        found += [
            entry.labels.get("loop", "?")
            for entry in read
            if entry.family == AGES and now - entry.value > LATE
        ]
    return sorted(found)
