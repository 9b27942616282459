"""How commands show things to people: tables that line up, in colour where a terminal asks for it.

Used by the commands that print lists. Text from the database never reaches a terminal with its
control characters: an escape sequence in a title would be obeyed. Wide characters (Chinese,
Japanese, Korean) count as two.
"""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from shared.config.env import plain_output

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
GAP = "  "
MIN_WIDTH = 8  # of a column that gives way


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: its head.
        right: numbers stand to the right.
        gives: shortened when the terminal is too narrow.
        style: names a style for a cell's text, or "".
    """

    name: str
    right: bool = False
    gives: bool = False
    style: Callable[[str], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where output goes. `width` None: not a terminal, nothing is shortened."""

    coloured: bool
    width: int | None

    @classmethod
    def of(cls, out: TextIO) -> Terminal:
        """What a stream can show."""
        if not out.isatty():
            return cls(coloured=False, width=None)
        return cls(coloured=not plain_output(), width=shutil.get_terminal_size().columns)

    def paint(self, text: str, style: str) -> str:
        """The text in a style, where colours are wanted."""
        if not (self.coloured and style):
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"

    def table(self, columns: Sequence[Column], rows: Sequence[Sequence[object]]) -> str:
        """A head and rows that line up."""
        cells = [[clean(value) for value in row] for row in rows]
        widths = self._widths(columns, cells)
        head = [self._cell(c.name, c, w, "bold") for c, w in zip(columns, widths, strict=True)]
        lines = [GAP.join(head)]
        for row in cells:
            shown = zip(row, columns, widths, strict=True)
            lines.append(GAP.join(self._cell(t, c, w, c.style(t)) for t, c, w in shown))
        return "\n".join(line.rstrip() for line in lines)

    def _widths(self, columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> list[int]:
        widths = [
            max([wide(column.name), *(wide(row[i]) for row in cells)])
            for i, column in enumerate(columns)
        ]
        if self.width is None:
            return widths
        over = sum(widths) + len(GAP) * (len(widths) - 1) - self.width
        givers = [i for i, column in enumerate(columns) if column.gives]
        for _ in range(over if givers else 0):  # cell by cell, so that the widest gives first
            widest = max(givers, key=widths.__getitem__)
            if widths[widest] <= MIN_WIDTH:
                break
            widths[widest] -= 1
        return widths

    def _cell(self, text: str, column: Column, width: int, style: str) -> str:
        shown = shortened(text, width)
        space = " " * (width - wide(shown))
        painted = self.paint(shown, style)
        return space + painted if column.right else painted + space


def here() -> Terminal:
    """Standard output."""
    return Terminal.of(sys.stdout)


def clean(value: object) -> str:
    """One line of text without control characters; nothing is shown as "-"."""
    if value is None:
        return "-"
    text = " ".join(str(value).split())
    return "".join(char if unicodedata.category(char)[0] != "C" else "�" for char in text)


def wide(text: str) -> int:
    """How many cells a terminal needs for a text."""
    return sum(_cells(char) for char in text)


def shortened(text: str, width: int) -> str:
    """The text, or its beginning with "…", in at most `width` cells."""
    if wide(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        if used + _cells(char) > width - 1:
            break
        kept.append(char)
        used += _cells(char)
    return "".join(kept) + "…"


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
