"""The parser of every command: argparse, with a "did you mean" for a word out of a closed set.

Stands between panel.cli.main and the commands, which declare their arguments on it; parsers of
subcommands are of the same class by themselves.
"""

from __future__ import annotations

import argparse
from difflib import get_close_matches
from typing import Any


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
