"""A queue process of the test application, its database and its effects log."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared.app import load_app
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import connect
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.queues.catalog import declare
from tests.support.app import EFFECTS
from tests.support.processes import Program, Programs
from tests.support.waiting import until
from workers.pool.tree import children

APP = "tests.support.app:app"


class TestQueue:
    """Starts queue processes and looks at what they did."""

    __test__ = False

    def __init__(self, programs: Programs, url: str) -> None:
        self.programs = programs
        self.url = url
        self.effects_path = programs.home / "effects"
        self.env = {"WEIRKEEPER_APP": APP, EFFECTS: str(self.effects_path)}
        self.conn: psycopg.Connection[Any] = connect(url, "test")
        declare(self.conn, load_app(APP))

    def start(self, *arguments: str, queue: str = "t", ready: bool = True, **env: str) -> Program:
        """Start a queue process; wait until it says that it is ready."""
        before = self.ready_epochs() if ready else set()
        program = self.programs.start("workers", queue, *arguments, env={**self.env, **env})
        if ready:
            until(
                lambda: self.ready_epochs() - before or not program.running(),
                60,
                "a queue process is ready",
            )
            assert program.running(), program.text()
        return program

    def ready_epochs(self) -> set[int]:
        rows = self.conn.execute("select epoch from weirkeeper.process where phase = 'ready'")
        return {row[0] for row in rows}

    def enqueue(self, kind: str, args: dict[str, Any] | None = None, **opts: Any) -> str:
        return PostgresJobs(self.conn).enqueue(f"t.{kind}", args or {}, EnqueueOpts(**opts))

    def record(self, **fields: Any) -> str:
        return PostgresRecorder(self.conn).record("t.happened", **fields)

    def attempts(self, job: str) -> list[dict[str, Any]]:
        """Finished attempts, in order."""
        with self.conn.cursor(row_factory=psycopg.rows.dict_row) as cursor:
            return list(
                cursor.execute(
                    "select * from weirkeeper.attempt where job_id = %s order by run", (job,)
                )
            )

    def final(self, job: str, timeout: float = 40) -> dict[str, Any]:
        """Wait for a job's end; return its last attempt."""

        def last() -> dict[str, Any] | None:
            found = self.attempts(job)
            done = found and found[-1]["state"] in ("completed", "discarded", "cancelled")
            return found[-1] if done else None

        return until(last, timeout, f"job {job} is final; attempts {self.attempts(job)}")

    def outcomes(self, job: str) -> list[str]:
        return [attempt["outcome"] for attempt in self.attempts(job)]

    def effects(self, job: str, what: str = "begin") -> list[dict[str, Any]]:
        """What really happened in a job."""
        try:
            text = self.effects_path.read_text()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind("\n") + 1]  # the last line may be half written
        entries = [json.loads(line) for line in whole.splitlines()]
        return [e for e in entries if e["job"] == job and e["what"] == what]

    def begun(self, job: str, times: int = 1, timeout: float = 30) -> dict[str, Any]:
        """Wait until a job has begun so often; return the last beginning."""
        return until(
            lambda: len(found := self.effects(job)) >= times and found[-1],
            timeout,
            f"job {job} begins (time {times})",
        )

    def where(self, job: str) -> list[str]:
        """In which tables a job stands."""
        return [
            name
            for name in ("ready", "scheduled", "parked", "running")
            if self.conn.execute(
                f"select 1 from weirkeeper.{name} where job_id = %s", (job,)
            ).fetchone()
        ]

    def count(self, table: str) -> int:
        row = self.conn.execute(f"select count(*) from weirkeeper.{table}").fetchone()
        return row[0] if row else 0


def server_of(program: Program) -> int:
    """Process id of a queue process's fork server."""
    [pid] = children(program.pid)
    return pid


def children_of(program: Program) -> set[int]:
    """Process ids of its children."""
    return children(server_of(program))


@pytest.fixture
def queue(programs: Programs, database_url: str) -> Iterator[TestQueue]:
    made = TestQueue(programs, database_url)
    yield made
    made.conn.close()


def alive(pid: int) -> bool:
    """Whether a process lives (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
