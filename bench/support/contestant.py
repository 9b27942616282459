"""What a measurement asks of a job system, ours or a rival's: one of them on a fresh database.

Two kinds of job, both of no work: `noop` keeps in memory when it was called, `stamp` appends the
moment to a file before it returns. Ours has a third, `nap`: as `noop`, and then asleep for a
millisecond. Moments are nanoseconds of CLOCK_MONOTONIC, which all processes
of a host share.
"""

from __future__ import annotations

import array
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, Protocol

import psycopg

from tests.support.waiting import until

NOOP, STAMP, NAP = "noop", "stamp", "nap"
NAP_SECONDS = 0.001
PATIENCE = 240.0  # seconds for all jobs of a round


class Seen(NamedTuple):
    """When an enqueue's commit was known, and when its caller knew that the job is completed."""

    committed: int
    completed: int


class Contestant(Protocol):
    """A job system on a database of its own."""

    @property
    def url(self) -> str:
        """Of its database."""
        ...

    def fill(self, kind: str, jobs: int) -> float:
        """Enqueue so many jobs in its fastest way; return the seconds."""
        ...

    def load(self, kind: str, jobs: int) -> None:
        """Put so many jobs in line, off the clock."""
        ...

    def each(self, kind: str, jobs: int) -> float:
        """Enqueue so many jobs, a commit each; return the seconds."""
        ...

    def work(self, expected: int = 0) -> None:
        """Start its worker; `expected` says how many `noop` will be called."""
        ...

    def starts(self) -> list[int]:
        """Wait until the expected jobs were called; when each was, in order."""
        ...

    def put(self, kind: str) -> int:
        """Enqueue one job; when its commit was known."""
        ...

    def wait(self, kind: str) -> Seen | None:
        """Enqueue one job and wait for its end; None = it has no such thing."""
        ...

    def stamps(self) -> list[int]:
        """When each `stamp` was called until now, in order."""
        ...

    def unfinished(self) -> bool:
        """Whether the database still holds a job that has not ended."""
        ...


Entry = Callable[[], AbstractContextManager[Contestant]]


def moments(path: Path, skip: int = 0) -> list[int]:
    """Moments that a file holds, in order; none when there is no file.

    Args:
        path: 8 bytes each, of this machine's order.
        skip: bytes to leave out at the beginning.
    """
    if not path.exists():
        return []
    raw = path.read_bytes()[skip:]
    found = array.array("q")
    found.frombytes(raw[: len(raw) // 8 * 8])
    return sorted(found)


def ended(contestant: Contestant) -> int:
    """Wait until nothing is unfinished; return when that was seen."""
    until(lambda: not contestant.unfinished(), PATIENCE, "every job ended")
    return time.monotonic_ns()


def analyse(url: str) -> None:
    """What autovacuum does within a minute after a backlog was written: learn how large it is."""
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("analyze")
