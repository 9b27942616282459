"""The adapters, as the contract sees them: ports, and a way to let jobs run.

Memory runs jobs when it is told to, in a clock of its own; Postgres has real queue processes, which
run all the while. A test waits with `until` and lets time pass with `pass_time`; both do what the
adapter needs.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psycopg

from shared.app import load_app
from shared.jobs.port import EnqueueOpts, Job, Runtime
from shared.jobs.states import FINAL
from shared.postgres.application.runtime import PostgresRuntime
from shared.postgres.queues.keys import UNTIL_ENABLED, key_open
from tests.conformance.app import APP, app
from tests.support.app import EFFECTS
from tests.support.processes import Programs
from tests.support.waiting import pause, until
from weirkeeper.testing import MemoryRuntime

T = TypeVar("T")
QUEUES = ("c", "one", "blocked", "limited")


class RolledBack(Exception):
    """Ends a transaction that a test wants to end so."""


class Engine(Protocol):
    """What a test of the contract is handed."""

    name: str
    runtime: Runtime
    home: Path

    def transaction(self) -> AbstractContextManager[Any]: ...

    def until(self, look: Callable[[], T], what: str, timeout: float = 20) -> T: ...

    def pass_time(self, seconds: float) -> None: ...

    def now(self) -> datetime: ...

    def again(self) -> None: ...

    def close_key(self, key: str) -> None: ...

    def open_key(self, key: str) -> None: ...

    def work(self) -> AbstractContextManager[None]: ...


class Bench:
    """An engine and what tests ask of every one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.name = engine.name
        self.jobs = self.inspector = self.waits = engine.runtime

    def enqueue(self, kind: str, args: dict[str, Any] | None = None, **opts: Any) -> str:
        return self.jobs.enqueue(f"c.{kind}", args or {}, EnqueueOpts(**opts))

    def state(self, job_id: str) -> str:
        return self.inspector.get(job_id).state

    def final(self, job_id: str) -> Job:
        """Let the job run to its end."""
        return self.reaches(job_id, *FINAL)

    def reaches(self, job_id: str, *states: str) -> Job:
        """Let jobs run until this one is in such a state."""

        def look() -> Job | None:
            job = self.inspector.get(job_id)
            return job if job.state in states else None

        return self.engine.until(look, f"job {job_id} is {' or '.join(states)}")

    def errors(self, job_id: str) -> list[str]:
        return [a.error for a in self.inspector.get(job_id).attempts if a.error]

    def effects(self, job_id: str, what: str = "begin") -> list[dict[str, Any]]:
        """What really happened in a job, whatever the engine says."""
        path = self.engine.home / "effects"
        lines = path.read_text().splitlines() if path.exists() else []
        entries = [json.loads(line) for line in lines]
        return [e for e in entries if e["job"] == job_id and e["what"] == what]

    @contextmanager
    def rolled_back(self) -> Iterator[Any]:
        """A transaction that ends with an error."""
        with suppress(RolledBack), self.engine.transaction() as tx:
            yield tx
            raise RolledBack

    @contextmanager
    def held(
        self, kind: str = "hold", more: dict[str, Any] | None = None, **opts: Any
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """A job (and its args) that runs as long as the block does."""
        file = self.engine.home / f"go-{secrets.token_hex(6)}"
        args = {"file": str(file), **(more or {})}
        with self.engine.work():
            try:
                job = self.enqueue(kind, args, **opts)
                until(lambda: self.effects(job), 20, f"job {job} has begun")
                yield job, args
            finally:
                file.touch()

    @contextmanager
    def paused(self, **what: str) -> Iterator[None]:
        """Nothing of a queue or kind starts inside."""
        self.inspector.pause(**what)
        try:
            yield
        finally:
            self.inspector.resume(**what)


class MemoryEngine:
    """The memory adapter."""

    name = "memory"

    def __init__(self, home: Path) -> None:
        self.home = home
        self.runtime: MemoryRuntime = MemoryRuntime(app)
        self.runtime.start()

    def transaction(self) -> AbstractContextManager[Any]:
        return self.runtime.transaction()

    def until(self, look: Callable[[], T], what: str, timeout: float = 20) -> T:
        """Run what is due, and let time pass to what is next, until it is so."""
        passed = 0.0
        while not (seen := look()):
            due = 0.0 if self.runtime.run_due() else self.runtime.next_due_in()
            if due is None or passed + due > timeout:
                raise AssertionError(f"nothing more happens, and not yet: {what}")
            passed += due
            self.runtime.clock.advance(due)
        return seen

    def pass_time(self, seconds: float) -> None:
        self.runtime.clock.advance(seconds)
        self.runtime.run_due()

    def now(self) -> datetime:
        return self.runtime.clock.wall()

    def close_key(self, key: str) -> None:
        self.runtime.close_key(key)

    def open_key(self, key: str) -> None:
        self.runtime.open_key(key)

    def again(self) -> None:
        self.runtime.stop()
        self.runtime = MemoryRuntime(app, after=self.runtime)
        self.runtime.start()

    @contextmanager
    def work(self) -> Iterator[None]:
        """Jobs run in another thread, like a process with one child."""
        stop = threading.Event()

        def run() -> None:
            while not stop.wait(0.005):
                self.runtime.run_due()

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


class PostgresEngine:
    """The Postgres adapter with real queue processes, started once for all tests of a session."""

    name = "postgres"

    def __init__(self, home: Path, url: str) -> None:
        self.home = home
        self.url = url
        self._programs = Programs(home, url)
        self._stand_up()
        self._env = {"WEIRKEEPER_APP": APP, EFFECTS: str(home / "effects")}
        for queue in QUEUES:
            self._programs.start("workers", queue, env=self._env)
        until(self._all_ready, 30, "the queue processes are ready")

    def _stand_up(self) -> None:
        self.runtime: Runtime = PostgresRuntime(self.url, "contract", load_app(APP))
        self.runtime.start()

    def _all_ready(self) -> bool:
        with psycopg.connect(self.url) as conn:
            [row] = conn.execute("select count(*) from weirkeeper.process where phase = 'ready'")
        return row[0] == len(QUEUES)

    @contextmanager
    def transaction(self) -> Iterator[psycopg.Connection[Any]]:
        with psycopg.connect(self.url) as conn:
            yield conn

    def until(self, look: Callable[[], T], what: str, timeout: float = 20) -> T:
        return until(look, timeout, what)

    def pass_time(self, seconds: float) -> None:
        pause(seconds, "the time of the database is the real one")

    def now(self) -> datetime:
        return datetime.now(UTC)

    def close_key(self, key: str) -> None:
        with self.transaction() as conn:
            key_open(conn, key, UNTIL_ENABLED)

    def open_key(self, key: str) -> None:
        with self.transaction() as conn:
            key_open(conn, key)

    def again(self) -> None:
        """The application declares itself anew, as at every start."""
        self.runtime.stop()
        self._stand_up()

    @contextmanager
    def work(self) -> Iterator[None]:
        yield  # the processes run all the while

    def close(self) -> None:
        self.runtime.stop()
        self._programs.close()


def ids(jobs: Sequence[Job]) -> list[str]:
    return [job.id for job in jobs]
