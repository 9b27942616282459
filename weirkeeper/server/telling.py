"""What `weirkeeper server` says to the person in front of it: short lines, no JSON."""

from __future__ import annotations

import sys


def say(line: str = "") -> None:
    """One line to standard output, at once; a reader that went away is no reason to stop."""
    try:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
    except OSError:
        return


def complain(line: str, name: str = "weirkeeper server") -> None:
    """One line to standard error, after the name of the command that says it."""
    try:
        sys.stderr.write(f"{name}: {line}\n")
        sys.stderr.flush()
    except OSError:
        return
