"""Our side of a comparison: the real program of one queue, and the public ways to enqueue."""

from __future__ import annotations

import struct
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.support.application import CALLS, FOLDER, HEAD, QUEUE
from bench.support.contestant import PATIENCE, STAMP, Contestant, Seen, moments
from shared.app import load_app
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from tests.support.databases import Databases
from tests.support.processes import Program, Programs
from tests.support.waiting import until
from weirkeeper import EnqueueOpts, Jobs, Runtime

APP = "bench.support.application:app"
READY = 30.0  # seconds that the program may take to start
UNFINISHED = (
    "select exists (select from weirkeeper.running) or exists (select from weirkeeper.ready)"
)
LOAD = "insert into weirkeeper.job (kind) select %s from generate_series(1, %s)"
STARTED = "select from weirkeeper.process where slot = %s and phase = 'ready'"


class Ours:
    """A contestant; see bench.support.contestant."""

    name = "Weirkeeper"

    def __init__(self, url: str, folder: Path, programs: Programs) -> None:
        self.url = url
        self._folder = folder
        self._programs = programs
        self._expected = 0
        self._program: Program | None = None
        self._conn = psycopg.connect(url, autocommit=True)
        self._jobs = Jobs(self._conn)
        self._runtime = Runtime(url, "bench")

    def fill(self, kind: str, jobs: int) -> float:
        """In one call of the Python function for many."""
        began = time.perf_counter()
        self._jobs.enqueue_many(kind, [{}] * jobs)
        return time.perf_counter() - began

    def load(self, kind: str, jobs: int) -> None:
        """As any language may: by rows with a kind alone, which a trigger completes."""
        self._conn.execute(LOAD, (kind, jobs))

    def each(self, kind: str, jobs: int) -> float:
        """Through the Python function, a commit each."""
        began = time.perf_counter()
        for _ in range(jobs):
            self._jobs.enqueue(kind, {})
        return time.perf_counter() - began

    def work(self, expected: int = 0) -> None:
        """The queue process, as supervisord starts it."""
        self._expected = expected
        env = {
            "WEIRKEEPER_APP": APP,
            FOLDER: str(self._folder),
            CALLS: str(max(1, expected)),
        }
        self._program = self._programs.start("workers", QUEUE, env=env)
        until(self._ready, READY, "the queue process is ready")

    def starts(self) -> list[int]:
        """From the memory of all children."""
        until(lambda: self._called() >= self._expected, PATIENCE, f"{self._expected} jobs began")
        taken: list[int] = []
        for path in self._folder.glob("calls-*"):
            taken += moments(path, HEAD)[-_count(path) :]
        return sorted(taken)

    def put(self, kind: str) -> int:
        """Through the Python function."""
        self._jobs.enqueue(kind, {})
        return time.monotonic_ns()

    def wait(self, kind: str) -> Seen | None:
        """Through `weirkeeper.Runtime`, which has not waited before the first."""
        job = self._runtime.enqueue(kind, {}, EnqueueOpts(awaited=True))
        committed = time.monotonic_ns()
        answer = self._runtime.wait(job, PATIENCE)
        completed = time.monotonic_ns()
        assert answer.state == "completed", answer
        return Seen(committed, completed)

    def stamps(self) -> list[int]:
        """From the file that all children append to."""
        return moments(self._folder / STAMP)

    def unfinished(self) -> bool:
        """Looks at what waits and what runs."""
        row = self._conn.execute(UNFINISHED).fetchone()
        return bool(row and row[0])

    def close(self) -> None:
        """End its sessions."""
        self._runtime.stop()
        self._conn.close()

    def _ready(self) -> bool:
        self._check_alive()
        return self._conn.execute(STARTED, (QUEUE,)).fetchone() is not None

    def _check_alive(self) -> None:
        assert self._program is not None, "call work first"
        assert self._program.running(), self._program.text()

    def _called(self) -> int:
        self._check_alive()
        return sum(map(_count, self._folder.glob("calls-*")))


def _count(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(HEAD)
    return int(struct.unpack("q", head)[0]) if len(head) == HEAD else 0


@contextmanager
def ours(server: Databases) -> Iterator[Contestant]:
    """Ours, on a fresh database with the measurements' application declared."""
    url = server.create()
    with connect(url, "bench") as conn:
        declare(conn, load_app(APP))
    with tempfile.TemporaryDirectory(prefix="wk-bench-") as folder:
        programs = Programs(Path(folder), url)
        contestant = Ours(url, Path(folder), programs)
        try:
            yield contestant
        finally:
            contestant.close()
            programs.close()
            server.drop(url)
