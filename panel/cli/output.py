"""What commands print: JSON for programs, or lines for people."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

STATE_STYLES = {
    "completed": "green",
    "running": "cyan",
    "retryable": "yellow",
    "discarded": "red",
    "cancelled": "dim",
    "failed": "red",
    "timeout": "red",
    "crashed": "red",
}


def print_json(value: Any) -> None:
    """Print a result as one JSON value; everything that an operation returns has a form."""
    print(json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2))


def complain(line: str) -> None:
    """Tell a person about something that was left out, beside the result."""
    print(line, file=sys.stderr)


def state_style(state: str) -> str:
    """How a state or an outcome is painted."""
    return STATE_STYLES.get(state, "")


def milliseconds(seconds: float) -> str:
    """A duration as people read it."""
    return f"{seconds * 1000:,.1f} ms" if seconds < 1 else f"{seconds:,.2f} s"
