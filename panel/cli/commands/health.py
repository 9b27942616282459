"""`weirkeeper health`: for probes that run a command. 0 = well, 1 = not; one line a process.

Alive means: a process of this home holds the slot, and its loops turn; the database is never asked,
so that a restart of Postgres gets nothing killed. --ready asks the process table as well.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from panel.cli.processes import look
from shared.config.settings import Settings
from shared.telemetry.turns import LATE, hanging, live_slots

HELP = "does a process live, and do its loops turn; exit 0 = yes. The database is asked by --ready"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--process", metavar="SLOT", help="this one; default: all of this home")
    parser.add_argument(
        "--ready", action="store_true", help="ready to work, too, as the database tells"
    )


def run(args: argparse.Namespace) -> int:
    """Look once; print a line a process; return 0 or 1."""
    folder = Settings.load().home / "metrics"
    living = live_slots(folder)
    slots = [args.process] if args.process else living
    found = {slot: _problem(folder, slot, living) for slot in slots}
    if args.ready and not any(found.values()):
        found |= _unready(slots)
    for slot, problem in found.items():
        print(f"{slot}: {problem or 'well'}")
    if not found:
        print("no process of this home lives")
    return 1 if any(found.values()) or not found else 0


def _problem(folder: Path, slot: str, living: list[str]) -> str:
    if slot not in living:
        return "no process of this home has this slot"
    late = hanging(folder, slot)
    return f"has not turned for {LATE:g} s: {', '.join(late)}" if late else ""


def _unready(slots: list[str]) -> dict[str, str]:
    """What keeps each of them from being ready."""
    report = look()
    phases = {process.slot: process.phase for process in report.processes}
    wrong = {slot: report.problem or phases.get(slot, "not registered") for slot in slots}
    return {slot: "" if phase == "ready" else phase for slot, phase in wrong.items()}
