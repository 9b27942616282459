"""The steps of a job's life, one call each, as a queue process and its database make them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from shared.app import load_app
from shared.jobs.port import EnqueueOpts
from shared.jobs.work import Claim, Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues import completions
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims

APP = "tests.support.app:app"
KIND = "t.ok"
QUEUE = "t"
EPOCH = 77

FAILED = {"outcome": "failed", "state": "retryable", "delay": 60.0, "error": "no"}
SPENT = {"outcome": "failed", "state": "discarded", "error": "no"}
DISCARDED = {"outcome": "discarded", "state": "discarded", "error": "not wanted"}
SNOOZED = {"outcome": "snoozed", "state": "pending", "delay": 60.0, "spent": False}
INTERRUPTED = {"outcome": "interrupted", "state": "pending", "delay": 0.0, "spent": False}


class Steps:
    """Makes each step on one connection.

    Attributes:
        inspector: on a connection of its own.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.conn: Connection = connect(url, "steps", Use.HOT)
        self._looks = connect(url, "looks")
        declare(self.conn, load_app(APP))
        self.inspector = PostgresInspector(self._looks)

    def close(self) -> None:
        self.conn.close()
        self._looks.close()

    def enqueue(self, kind: str = KIND, args: dict[str, Any] | None = None, **opts: Any) -> str:
        return PostgresJobs(self.conn).enqueue(kind, args or {}, EnqueueOpts(**opts))

    def claim(self, kinds: tuple[str, ...] = (KIND,), limit: int = 100) -> list[Claim]:
        return Claims(self.conn, QUEUE, EPOCH).claim(kinds, limit)

    def finish(self, claim: Claim, **how: Any) -> int:
        return completions.finish(self.conn, EPOCH, [Finish(claim.job_id, claim.token, **how)])

    def run(self, kind: str = KIND, **how: Any) -> str:
        """Enqueue, claim, finish."""
        job = self.enqueue(kind)
        [claim] = self.claim((kind,))
        assert str(claim.job_id) == job
        self.finish(claim, **how)
        return job

    def state(self, job: str) -> str:
        return self.inspector.get(job).state

    def where(self, job: str) -> list[str]:
        """Every place where the job is."""
        return [
            name
            for name in ("ready", "scheduled", "parked", "running")
            if self.one(f"select 1 from weirkeeper.{name} where job_id = %s", job)
        ]

    def log(self, job: str) -> list[tuple[str, str]]:
        """(outcome, state) of every entry of the log."""
        return [(a.outcome, a.state) for a in self.inspector.get(job).attempts]

    def one(self, query: str, *params: Any) -> Any:
        row = self.conn.execute(query, params or None).fetchone()
        return row[0] if row else None


def fill(steps: Steps, number: int, size: int = 10) -> None:
    """Jobs in numbers: two thirds waiting, the others discarded."""
    steps.conn.execute(
        "with jobs as (insert into weirkeeper.job (kind, queue, args, max_attempts, timeout_ms,"
        " awaited) select 't.ok', 't', jsonb_build_object('x', repeat('0123456789', %s)), 3, 1000,"
        " false from generate_series(1, %s) returning id),"
        " line as (insert into weirkeeper.ready (queue, kind, priority, job_id)"
        " select 't', 't.ok', 2, id from jobs where id %% 3 > 0)"
        " insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " select id, 1, 1, 'failed', 'discarded' from jobs where id %% 3 = 0",
        (size, number),
    )


class Notices:
    """Hears which jobs became final, and how often."""

    def __init__(self, url: str) -> None:
        self._conn = psycopg.connect(url, autocommit=True)
        self._conn.execute("listen weirkeeper_final")
        self._heard: list[str] = []

    def heard(self) -> list[str]:
        """Every id that was told so far."""
        self._conn.execute("select 1")  # what was committed before this is here after it
        for notice in self._conn.notifies(timeout=0):
            self._heard += notice.payload.split(",")
        return sorted(self._heard, key=int)

    def since(self, number: int) -> list[str]:
        """Ids in the order in which they were told, without so many of the first."""
        self.heard()
        return self._heard[number:]

    def close(self) -> None:
        self._conn.close()


@pytest.fixture(name="steps")
def steps_fixture(database_url: str) -> Iterator[Steps]:
    made = Steps(database_url)
    yield made
    made.close()


@pytest.fixture(name="notices")
def notices_fixture(database_url: str) -> Iterator[Notices]:
    made = Notices(database_url)
    yield made
    made.close()
