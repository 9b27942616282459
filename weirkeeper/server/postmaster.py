"""A running postmaster, as its data folder tells: which process, whether ready, and its end.

Reads postmaster.pid, which Postgres keeps; needs no client and no password.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from shared.services.process import wait_until_gone


@dataclass(frozen=True, slots=True)
class Postmaster:
    """One running postmaster."""

    pid: int
    port: int
    ready: bool


def find(data: Path) -> Postmaster | None:
    """The living postmaster of a data folder, or None.

    A left-over file whose process is gone, or is by now another program's, counts as none.
    """
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
        pid, folder, port = int(lines[0]), lines[1], int(lines[3])
    except (OSError, ValueError, IndexError):
        return None
    if Path(folder).resolve() != data.resolve() or not _is_postgres(pid):
        return None
    return Postmaster(pid, port, len(lines) > 7 and lines[7].strip() == "ready")


def stop(data: Path, number: signal.Signals, seconds: float) -> bool:
    """Ask the postmaster of a data folder to end, and wait until it is gone.

    Args:
        data: its folder.
        number: SIGTERM (smart), SIGINT (fast) or SIGQUIT (immediate).
        seconds: how long to wait at most.

    Returns:
        Whether none is left.
    """
    found = find(data)
    if found is None:
        return True
    os.kill(found.pid, number)
    return wait_until_gone(found.pid, seconds)


def _is_postgres(pid: int) -> bool:
    """Alive, not a zombie, and a postgres: process ids are used again."""
    try:
        name, rest = Path(f"/proc/{pid}/stat").read_text().split("(", 1)[1].rsplit(")", 1)
    except (OSError, IndexError, ValueError):
        return False
    return name.startswith("postgres") and rest.split()[0] not in "ZX"
