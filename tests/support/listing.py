"""The list of metrics as docs/metrics.md shows it, made from the code.

After a change: `python -P -m tests.support.listing` writes it into the page.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from metrics.families import FROM_DATABASE, OF_ITSELF
from shared.telemetry.instruments import open_instruments

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
BEGIN, END = "<!-- metrics: begin -->", "<!-- metrics: end -->"


def rows() -> list[tuple[str, str, str, str, str]]:
    """(name, type, labels, from, meaning) of every metric."""
    with tempfile.TemporaryDirectory() as home:
        instruments = open_instruments(Path(home), "listing")
        found = [
            (
                family.name,
                family.kind,
                ", ".join((*family.label_names, *(["slot"] if family.kind == "gauge" else []))),
                "process",
                family.help_text,
            )
            for family in instruments.families()
        ]
        instruments.close()
    for gauges, source in ((FROM_DATABASE, "database"), (OF_ITSELF, "metrics")):
        found += [
            (f"weirkeeper_{g.name}", "gauge", ", ".join(g.labels), source, g.help_text)
            for g in gauges
        ]
    return found


def table() -> str:
    """The rows in Markdown."""
    lines = ["| name | type | labels | from | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {kind} | {labels} | {source} | {meaning} |"
        for name, kind, labels, source, meaning in rows()
    ]
    return "\n".join(lines)


def shown() -> str:
    """What the page shows between its marks."""
    return PAGE.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def write() -> None:
    """Put the list into the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    write()
