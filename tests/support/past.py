"""Jobs and processes of the past: what retention is there for."""

from __future__ import annotations

from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection

KIND = "corpus.index"
DAY = 86_400.0
WEEK = 7 * DAY


def never() -> bool:
    """Not enough yet."""
    return False


def job(conn: Connection, state: str | None, hours: float, **opts: object) -> int:
    """A job that was enqueued, and ended in this state, so many hours ago."""
    number = int(PostgresJobs(conn).enqueue(KIND, {"n": 1}, EnqueueOpts(**opts)))  # type: ignore[arg-type]
    age(conn, number, hours)
    if state is not None:
        end(conn, number, state, hours)
    return number


def age(conn: Connection, number: int, hours: float) -> None:
    conn.execute(
        "update weirkeeper.job set created_at = now() - make_interval(secs => %s) where id = %s",
        (hours * 3600 + 1, number),
    )


def end(conn: Connection, number: int, state: str, hours: float) -> None:
    conn.execute("delete from weirkeeper.ready where job_id = %s", (number,))
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, finished_at)"
        " select %s, coalesce(max(run), 0) + 1, 1, case %s when 'completed' then 'completed'"
        "   when 'cancelled' then 'cancelled' else 'failed' end, %s,"
        "   now() - make_interval(secs => %s)"
        " from weirkeeper.attempt where job_id = %s",
        (number, state, state, hours * 3600, number),
    )


def count(conn: Connection, table: str) -> int:
    return conn.execute(f"select count(*) from weirkeeper.{table}").fetchone()[0]


def fill(conn: Connection, number: int, hours: float = 30) -> None:
    """Many jobs that completed so long ago."""
    conn.execute(
        "with made as ("
        "  insert into weirkeeper.job (kind, queue, max_attempts, timeout_ms, awaited, created_at)"
        "  select 'corpus.index', 'index', 3, 1000, false, now() - make_interval(secs => %s)"
        "  from generate_series(1, %s) returning id)"
        " insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, finished_at)"
        " select id, 1, 1, 'completed', 'completed', now() - make_interval(secs => %s) from made",
        (hours * 3600 + 1, number, hours * 3600),
    )


def process(conn: Connection, days: float, phase: str = "stopped", kinds: str = "{}") -> int:
    [epoch] = conn.execute(
        "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
        " pid_started, version, phase, connections, beat_at, kinds)"
        " values ('queue', 's', 'h', 'b', 1, 1, 1, '1', %s, 1, now() - make_interval(secs => %s), %s)"
        " returning epoch",
        (phase, days * DAY, kinds),
    ).fetchone()
    conn.execute(
        "insert into weirkeeper.drain (epoch, role, slot, started_at, finished_at, phases, jobs)"
        " values (%s, 'queue', 's', now(), now() - make_interval(secs => %s), '{}', '{}')",
        (epoch, days * DAY),
    )
    return epoch
