"""`weirkeeper status`: which processes run. 0 = every one that should is ready, 1 = not."""

from __future__ import annotations

import argparse
import math
import threading
from collections.abc import Iterator

from panel.cli.output import print_json
from panel.cli.processes import Process, Report, look
from panel.cli.terminal import Column, here
from shared.clock import SYSTEM
from shared.config.budget import overdrawn

HELP = "show which processes run; exit 0 once every one that should is ready, else 1"
STYLES = {
    "ready": "green",
    "starting": "yellow",
    "draining": "yellow",
    "gone": "red",
    "missing": "red",
    "stopped": "red",
}
COLUMNS = (
    Column("role"),
    Column("slot", gives=True),
    Column("phase", style=lambda phase: STYLES.get(phase, "")),
    Column("pid", right=True),
    Column("host", gives=True),
    Column("beat", right=True),
    Column("children", right=True),
    Column("address"),
)
LOOK = 0.2  # seconds between looks while waiting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="wait until all are ready, at most so long",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    """Look, as often as --wait allows; print the last look; return 0 or 1."""
    found = _settled(args.wait)
    if args.json:
        print_json(found.plain())
    else:
        _print(found)
    return 0 if found.ready else 1


def _settled(seconds: float) -> Report:
    deadline = SYSTEM.monotonic() + seconds
    pause = threading.Event()
    found = look()
    while not found.ready and SYSTEM.monotonic() < deadline:
        pause.wait(LOOK)
        found = look()
    return found


def _print(found: Report) -> None:
    if found.processes:
        print(here().table(COLUMNS, [_row(process) for process in found.processes]))
        print()
    for line in _capacity(found):
        print(line)
    print(found.told())


def _capacity(found: Report) -> Iterator[str]:
    """How much each queue can do at once, and what that costs the server."""
    told = [
        f"{c.queue} {c.children}" + (f" ({c.processes} processes)" if c.processes > 1 else "")
        for c in found.capacity
    ]
    if told:
        yield f"jobs at once: {', '.join(told)}"
    if found.connections is not None:
        needed, usable = found.connections.needed, found.connections.usable
        yield f"connections: at most {needed} of the server's {usable} usable ones"
        if warning := overdrawn(needed, usable):
            yield f"warning: {warning}"


def _row(process: Process) -> tuple[object, ...]:
    return (
        process.role,
        process.slot,
        process.phase,
        process.pid,
        process.host,
        None if process.beat_age is None else f"{process.beat_age:.1f} s",
        process.children or None,
        process.address,
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"expected seconds from 0 to 86400; got {text!r}")
    return seconds
