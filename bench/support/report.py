"""One way to report: a table for people, then one last line of JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Result:
    """The one figure that a measurement is judged by.

    Attributes:
        name: of the measurement, as in `script/bench NAME`.
        ours: our figure.
        target: what `ours`, or the ratio when there is a rival, is held against.
        better: whether a lower or a higher figure is better.
        rival: the rival's figure of the same run; None = the target is absolute, or the rival is
            not there.
        relative: the target is a ratio; without the rival nothing can be judged.
        also: further figures of the same run that are judged, too.
    """

    name: str
    ours: float
    target: float
    better: Literal["lower", "higher"]
    rival: float | None = None
    relative: bool = False
    also: tuple[Result, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Ours as a multiple of the rival's."""
        return self.ours / self.rival if self.rival else None

    @property
    def ok(self) -> bool | None:
        """Whether every target was met; None = the rival of one that is needed was not there."""
        verdicts = [self._own(), *(result.ok for result in self.also)]
        if False in verdicts:
            return False
        return None if None in verdicts else True

    def line(self) -> str:
        """The line of JSON."""
        return json.dumps(self._shown())

    def _own(self) -> bool | None:
        if self.relative and self.ratio is None:
            return None
        judged = self.ours if self.ratio is None else self.ratio
        return judged <= self.target if self.better == "lower" else judged >= self.target

    def _shown(self) -> dict[str, object]:
        shown: dict[str, object] = {
            "name": self.name,
            "ours": _rounded(self.ours),
            "rival": _rounded(self.rival),
            "ratio": _rounded(self.ratio),
            "target": self.target,
            "ok": self.ok,
        }
        if self.also:
            shown["also"] = [result._shown() for result in self.also]  # noqa: SLF001
        return shown


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns that line up: text to the left, numbers to the right."""
    cells = [list(head), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in cells
    )


def finish(head: Sequence[str], rows: Sequence[Sequence[object]], result: Result) -> int:
    """Print the table and the last line; return the exit code: 1 = a target was missed, else 0."""
    print(table(head, rows))
    print()
    print(result.line(), flush=True)
    return 1 if result.ok is False else 0


def _cell(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
