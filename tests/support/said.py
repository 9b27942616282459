"""What a queue process says to Postgres: every statement, as the server's log has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from shared.postgres.driver.statements import statement

LOGGED = {"log_statement": "all", "log_line_prefix": "%a| "}  # of a server that is to be asked
LINE = re.compile(r"^([^|\n]+)\| LOG:  (?:execute [^:\n]+|statement): (.*)$", re.MULTILINE)


class Said(NamedTuple):
    """How many statements were looks for claims, and how many anything else."""

    polls: int
    others: int


def position(log: Path) -> int:
    """Where a log ends for now."""
    return log.stat().st_size


def said(log: Path, slot: str, since: int) -> Said:
    """What all sessions of one slot's process said since then."""
    text = log.read_bytes()[since:].decode("utf-8", "replace")
    lines = [m[2] for m in LINE.finditer(text) if m[1].startswith(f"weirkeeper {slot} ")]
    polls = lines.count(statement("claims/claim").splitlines()[0].replace("%(limit)s", "$1"))
    return Said(polls, len(lines) - polls)
