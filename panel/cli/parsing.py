"""The parser of every command: argparse, with a "did you mean" for a word out of a closed set.

Reads whole numbers as people write them (`whole`, `within`). Stands between panel.cli.main and the
commands, which declare their arguments on it; parsers of subcommands are of the same class by
themselves.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

# What int() takes besides is no number of ours: underscores, spaces, other digits.
_WHOLE = re.compile(r"-?[0-9]{1,18}", re.ASCII)


def whole(text: str) -> int:
    """An argument's `type`: a whole number in decimal digits.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    if not _WHOLE.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"expected a whole number in decimal digits; got {text[:40]!r}"
        )
    return int(text)


def within(least: int, most: int) -> Callable[[str], int]:
    """An argument's `type`: a whole number of a span, both ends included."""

    def read(text: str) -> int:
        number = whole(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"expected {least} to {most}; got {number}")
        return number

    return read


class Parser(argparse.ArgumentParser):
    """Refuses a wrong word with the nearest right one."""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Called by argparse for each value of an argument that has choices."""
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        near = get_close_matches(str(value), choices, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        told = f"expected one of {', '.join(choices)}; got {value!r}{hint}"
        raise argparse.ArgumentError(action, told)
