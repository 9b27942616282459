"""What tests of `weirkeeper verify` plant, and how they look: on the site's kind corpus.index."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.verify import repair, violations

KIND = "corpus.index"
DAY = 86_400.0


@pytest.fixture(name="conn")
def conn_fixture(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HANDLER) as opened:
        # Of one subscription, so that what is told is told once.
        opened.execute("delete from weirkeeper.route where subscription = 'webhook.fanout'")
        yield opened


def add(conn: Connection, **opts: object) -> int:
    return int(PostgresJobs(conn).enqueue(KIND, {"n": 1}, EnqueueOpts(**opts)))  # type: ignore[arg-type]


def owner(conn: Connection, phase: str = "ready", silent: float = 0) -> int:
    return conn.execute(
        "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
        " pid_started, version, phase, connections, beat_at)"
        " values ('queue', 's', 'h', 'b', 1, 1, 1, '1', %s, 1, now() - make_interval(secs => %s))"
        " returning epoch",
        (phase, silent),
    ).fetchone()[0]


def broken(conn: Connection) -> list[tuple[str, str]]:
    return sorted((v.rule, v.subject) for v in violations(conn, DAY))


def mended(conn: Connection) -> list[tuple[str, str, str]]:
    return [(m.rule, m.subject, m.done) for m in repair(conn, DAY)]


def where(conn: Connection, number: int) -> list[str]:
    return [
        table
        for table in ("ready", "scheduled", "parked", "running")
        if conn.execute(f"select 1 from weirkeeper.{table} where job_id = %s", (number,)).fetchone()
    ]


def schedule(conn: Connection, number: int) -> None:
    conn.execute(
        "insert into weirkeeper.scheduled values (%s, now(), 'index', 'corpus.index', 2, 0, 0, 'delay')",
        (number,),
    )


def log_end(conn: Connection, number: int, state: str = "completed") -> None:
    outcome = "completed" if state == "completed" else "discarded"
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " values (%s, 1, 1, %s, %s)",
        (number, outcome, state),
    )


def event(conn: Connection) -> str:
    row = conn.execute(
        "select weirkeeper.record_event('corpus.note.changed', null, 'a')"
    ).fetchone()
    return str(row[0])
