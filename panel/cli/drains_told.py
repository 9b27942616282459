"""How stops are told to people and programs: their phases, and what they interrupted.

Used by `weirkeeper drains` and `weirkeeper drain`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from panel.cli.terminal import Column, here

ORDER = ("give_back", "wait", "interrupt", "flush")  # of phases; stored ones have none
COLUMNS = (
    Column("slot", gives=True),
    Column("host", gives=True),
    Column("ended"),
    Column("took", right=True),
    Column("phases", gives=True),
    Column("jobs", gives=True),
)


def plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """One stop for programs; moments in ISO 8601."""
    moments = ("started_at", "finished_at")
    return {**row, **{name: row[name].isoformat() for name in moments}}


def print_drains(rows: Iterable[Mapping[str, Any]]) -> None:
    """A line a stop, then the jobs that were interrupted."""
    found = list(rows)
    print(here().table(COLUMNS, [_row(row) for row in found]))
    for row in found:
        if row["interrupted"]:
            jobs = ", ".join(f"{job['job']} ({job['kind']})" for job in row["interrupted"])
            print(f"{row['slot']} interrupted {jobs}: in line again, no attempt spent")


def _row(row: Mapping[str, Any]) -> tuple[object, ...]:
    return (
        row["slot"],
        row["host"],
        f"{row['finished_at']:%Y-%m-%d %H:%M:%S}",
        f"{row['seconds']:.1f} s",
        " ".join(f"{name} {float(seconds):.1f}" for name, seconds in _phases(row)),
        " ".join(f"{number} {name}" for name, number in row["jobs"].items() if number) or None,
    )


def _phases(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """In the order in which they came."""
    known = {name: place for place, name in enumerate(ORDER)}
    return sorted(row["phases"].items(), key=lambda phase: known.get(phase[0], len(ORDER)))
