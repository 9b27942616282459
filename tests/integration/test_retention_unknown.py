"""Jobs of kinds that nobody knows: left for the other generation, discarded in the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues import retention
from shared.postgres.queues.claims import Claims
from tests.support.past import DAY, KIND, job, never, process


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HANDLER) as opened:
        yield opened


def stranger(conn: Connection, hours: float, kind: str = "new.kind") -> int:
    conn.execute(
        "insert into weirkeeper.kind (name, queue, max_attempts, timeout_ms, awaited)"
        " values (%s, 'index', 1, 1000, false) on conflict do nothing",
        (kind,),
    )
    number = int(PostgresJobs(conn).enqueue(kind, {}))
    conn.execute(
        "update weirkeeper.ready set ready_at = now() - make_interval(secs => %s) where job_id = %s",
        (hours * 3600, number),
    )
    return number


def discard(conn: Connection, known: list[str] | None = None) -> int:
    return retention.discard_unknown(conn, known or [KIND], ["index"], DAY, never)


def test_a_job_of_a_kind_that_nobody_knows_is_discarded_after_its_horizon_and_can_be_retried(conn):
    young, old = stranger(conn, 23), stranger(conn, 25)
    known = job(conn, None, 100)
    conn.execute(
        "update weirkeeper.ready set ready_at = now() - interval '4 days' where job_id = %s",
        (known,),
    )
    conn.execute("listen weirkeeper_final")
    assert discard(conn) == 1
    assert [n.payload for n in conn.notifies(timeout=5, stop_after=1)] == [str(old)]
    shown = PostgresInspector(conn).get(str(old))
    assert shown.state == "discarded"
    assert shown.attempts[-1].cause == "unknown_kind"
    assert "expected a process that knows it" in shown.attempts[-1].error
    states = [PostgresInspector(conn).get(str(n)).state for n in (young, known)]
    assert states == ["pending", "pending"]
    PostgresInspector(conn).retry(str(old))
    assert discard(conn) == 0  # a day from now on, again
    [claim] = [c for c in Claims(conn, "index", 1).claim(["new.kind"], 10) if c.job_id == old]
    assert claim.run == 2


def test_a_kind_that_one_living_process_knows_waits_for_it(conn):
    stranger(conn, 100)
    process(conn, 0, "ready", "{other,new.kind}")
    assert discard(conn) == 0
    conn.execute("update weirkeeper.process set beat_at = now() - interval '20 s'")
    assert discard(conn) == 1


def test_a_kind_whose_queue_has_no_process_is_known_by_the_declaration(conn):
    stranger(conn, 100)
    assert discard(conn, [KIND, "new.kind"]) == 0


def test_a_due_job_of_a_queue_without_a_process_gets_in_line(conn):
    number = stranger(conn, 0)
    conn.execute("delete from weirkeeper.ready where job_id = %s", (number,))
    conn.execute(
        "insert into weirkeeper.scheduled values (%s, now(), 'index', 'new.kind', 2, 1, 1, 'retry')",
        (number,),
    )
    discard(conn)
    assert conn.execute("select job_id from weirkeeper.ready").fetchall() == [(number,)]
