"""What is measured: a migrated database on a durable server of its own, or the whole stack on it.

Built on the code that tests stand on (tests/support), with one difference: the server writes to
the disk as it would for real, because a figure without fsync is a figure of something else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests.support.cluster import ThrowawayCluster
from tests.support.databases import Databases
from tests.support.processes import Program, Programs
from tests.support.waiting import until

DURABLE = {"max_connections": "120"}
EVERYTHING = (("relay",), ("workers", "index"), ("workers", "notify"), ("listener",), ("metrics",))


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack.

    Attributes:
        url: of its database.
        home: its WEIRKEEPER_HOME.
        environment: what further programs need to find it (`weirkeeper import …`).
        programs: what runs, in the order asked for.
    """

    url: str
    home: Path
    environment: dict[str, str]
    programs: list[Program]


@contextmanager
def server() -> Iterator[Databases]:
    """A server that ends with the block; gives what makes databases on it."""
    cluster = ThrowawayCluster(DURABLE, folder=Path(tempfile.gettempdir()))
    try:
        yield Databases(cluster.url)
    finally:
        cluster.stop()


@contextmanager
def database() -> Iterator[str]:
    """A migrated database, alone on a server that ends with the block; gives its URL."""
    with server() as databases:
        yield databases.create()


@contextmanager
def stack(
    wanted: Sequence[Sequence[str]] = EVERYTHING, ready_within: float = 60.0
) -> Iterator[Stack]:
    """Start programs on a database of their own; give them when every one is ready.

    Args:
        wanted: module and arguments of each.
        ready_within: seconds until the last must be ready.
    """
    with database() as url, tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        home = Path(folder)
        programs = Programs(home, url)
        try:
            started = [programs.start(*command) for command in wanted]
            with psycopg.connect(url, autocommit=True) as conn:
                until(
                    lambda: _ready(conn, started) == len(started),
                    ready_within,
                    f"all of {', '.join(' '.join(w) for w in wanted)} are ready",
                )
            yield Stack(url, home, programs.environment, started)
        finally:
            programs.close()


def _ready(conn: psycopg.Connection, started: Sequence[Program]) -> int:
    for program in started:
        if not program.running():
            raise RuntimeError(f"a program ended before it was ready:\n{program.text()}")
    rows = conn.execute(
        "select count(*) from weirkeeper.process where phase = 'ready' and pid = any(%s)",
        ([p.pid for p in started],),
    ).fetchone()
    return int(rows[0]) if rows else 0
