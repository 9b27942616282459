"""A process's dealings with its queue, on a real Postgres: lost replies, promotion, the watch."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from shared.app import App, load_app
from shared.config.queues import Queue
from shared.errors import DatabaseUnavailable
from shared.jobs.kinds import Kind
from shared.jobs.work import Around, Finish
from shared.postgres.driver.connect import connect
from shared.postgres.driver.sessions import ChildSession
from shared.postgres.processes.registry import Registration, register
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.work import Owner, PostgresWork
from shared.services.process import identity
from tests.support.waiting import until

APP = App(queues=(Queue("q"),), kinds=(Kind("q.ok", "q", "m:f", timeout=5),))


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection]:
    with connect(database_url, "test") as made:
        declare(made, APP.merged(load_app(None)).check())
        yield made


@pytest.fixture
def work(conn: psycopg.Connection, database_url: str) -> Iterator[PostgresWork]:
    epoch = register(conn, identity(), Registration("queue", "q", "q", "1", 3, 1))
    made = PostgresWork.open(database_url, Owner("q", "q", epoch))
    yield made
    made.close()


def enqueue(conn: psycopg.Connection, delay: float | None = None) -> int:
    row = conn.execute(
        "select weirkeeper.enqueue('q.ok', run_at => clock_timestamp() + make_interval(secs => %s))",
        (delay,),
    ).fetchone()
    return row[0]


def test_a_queue_that_is_not_declared_yet_is_waited_for(
    conn: psycopg.Connection, database_url: str
) -> None:
    with pytest.raises(DatabaseUnavailable, match="not declared"):
        PostgresWork.open(database_url, Owner("x", "nowhere", 1))


def test_what_is_held_is_told_and_given_back_unspent(
    conn: psycopg.Connection, work: PostgresWork
) -> None:
    job = enqueue(conn)
    [claim] = work.claim(["q.ok"], 5)
    [held] = work.held()
    assert (held.job_id, held.token) == (job, claim.token)
    assert work.give_back([held]) == 1
    assert work.held() == []
    [again] = work.claim(["q.ok"], 5)
    assert (again.job_id, again.attempt, again.run) == (job, 0, claim.run + 1)


def test_a_promoted_job_can_be_claimed(conn: psycopg.Connection, work: PostgresWork) -> None:
    job = enqueue(conn, delay=3600)
    moved, due, _ = work.promote()
    assert moved == 0
    assert 3590 < due <= 3600
    conn.execute("update weirkeeper.scheduled set run_at = now() - interval '1 s'")
    assert work.promote() == (1, None, None)
    assert [claim.job_id for claim in work.claim(["q.ok"], 5)] == [job]


def test_a_look_around_tells_what_there_is_to_look_after(
    conn: psycopg.Connection, work: PostgresWork
) -> None:
    def seen() -> Around:
        return work.promote(look=True)[2]

    assert seen().ticks, "the engine's own periodic jobs are new"
    conn.execute("update weirkeeper.periodic set next_at = now() + interval '11 s'")
    assert seen() == Around(ours=False, others=False, parked=False, ticks=False)
    conn.execute("update weirkeeper.periodic set next_at = now() + interval '9 s'")
    assert seen().ticks
    conn.execute("update weirkeeper.periodic set next_at = now() + interval '1 day'")
    job = enqueue(conn)
    [claim] = work.claim(["q.ok"], 5)
    assert seen() == Around(ours=True, others=False, parked=False, ticks=False)
    conn.execute("update weirkeeper.running set queue = 'other'")  # of another loop of the process
    assert seen() == Around(ours=False, others=False, parked=False, ticks=False)
    conn.execute("update weirkeeper.running set epoch = epoch + 1")
    assert seen() == Around(ours=False, others=True, parked=False, ticks=False)
    assert (claim.job_id, work.dead_owners()[0].reason) == (job, "unregistered")
    conn.execute("insert into weirkeeper.key (name) values ('k')")
    conn.execute(
        "insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)"
        " values (%s, 'k', 'q', 'q.ok', 2, 0, 1)",
        (job,),
    )
    assert seen() == Around(ours=False, others=True, parked=True, ticks=False)


def test_the_oldest_claimable_job_is_seen(conn: psycopg.Connection, work: PostgresWork) -> None:
    assert work.oldest(["q.ok"]) is None
    enqueue(conn)
    conn.execute("update weirkeeper.ready set ready_at = ready_at - interval '100 s'")
    assert work.oldest(["q.ok"]) == pytest.approx(100, abs=5)
    assert work.oldest(["q.other"]) is None


def test_an_ended_session_is_seen(conn: psycopg.Connection, work: PostgresWork) -> None:
    assert work.connected
    conn.execute("select pg_terminate_backend(%s)", (work.sleeper,))
    with pytest.raises(DatabaseUnavailable):
        until(work.drain, 5, "its end")
    assert not work.connected


def test_a_childs_session_is_opened_late_kept_clean_and_opened_again(
    conn: psycopg.Connection, database_url: str
) -> None:
    session = ChildSession(database_url, "child")
    with session.connection() as first:
        pid = first.info.backend_pid
        first.execute("begin")
        first.execute("create table weirkeeper.left_behind ()")
    with session.connection() as second:
        assert second.info.backend_pid == pid
        assert second.execute("select to_regclass('weirkeeper.left_behind')").fetchone() == (None,)
    conn.execute("select pg_terminate_backend(%s)", (pid,))
    with pytest.raises(psycopg.OperationalError), session.connection() as third:
        until(lambda: third.execute("select 1") is None, 5, "its end")
    with session.connection() as fourth:
        assert fourth.info.backend_pid != pid
        fourth.close()
    assert session.load_event("00000000-0000-0000-0000-000000000000") is None
    with session.connection() as last:
        last.close()


@pytest.mark.parametrize(
    ("left", "shown", "clean"),
    [
        ("set search_path = nowhere", "show search_path", '"$user", public'),
        ("set statement_timeout = 60000", "show statement_timeout", "0"),
        ("set synchronous_commit = off", "show synchronous_commit", "on"),
        ("set role pg_monitor", "select current_user = session_user", True),
        (
            "select pg_advisory_lock(17)",
            "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
            0,
        ),
        ("create temp table orders ()", "select to_regclass('orders')", None),
        ("listen orders", "select count(*) from pg_listening_channels()", 0),
    ],
)
def test_what_a_job_did_to_its_session_does_not_reach_the_next(
    database_url: str, left: str, shown: str, clean: object
) -> None:
    session = ChildSession(database_url, "child")
    with session.connection() as first:
        pid = first.info.backend_pid
        first.execute(left)
    session.renew()
    with session.connection() as second:
        assert second.execute(shown).fetchone() == (clean,)
        assert second.info.backend_pid == pid
        second.autocommit = False
    session.renew()
    with session.connection() as third:
        assert third.autocommit
        third.close()


def lose(conn: psycopg.Connection, job: int, *, later: bool = False) -> None:
    """Undo the claim of a job, as a crash of the server may; also its promotion."""
    table, moment = ("scheduled", "run_at, why") if later else ("ready", "ready_at")
    values = "clock_timestamp(), 'retry'" if later else "clock_timestamp()"
    with conn.transaction():
        conn.execute(
            f"insert into weirkeeper.{table} (queue, kind, priority, job_id, attempt, run, {moment})"
            f" select queue, kind, priority, job_id, attempt, run - 1, {values}"
            " from weirkeeper.running where job_id = %s",
            (job,),
        )
        conn.execute("delete from weirkeeper.running where job_id = %s", (job,))


@pytest.mark.parametrize("later", [False, True])
def test_a_claim_that_a_crash_lost_is_held_again_under_its_token(
    conn: psycopg.Connection, work: PostgresWork, later: bool
) -> None:
    job = enqueue(conn)
    [claim] = work.claim(["q.ok"], 5)
    lose(conn, job, later=later)
    assert work.retake([claim]) == {job}
    [held] = work.held()
    assert (held.job_id, held.token) == (job, claim.token)
    assert work.claim(["q.ok"], 5) == []
    assert work.finish([Finish(job, claim.token)]) == 1
    state = conn.execute(
        "select outcome, run, attempt from weirkeeper.attempt where job_id = %s", (job,)
    ).fetchall()
    assert state == [("completed", 1, 1)]


@pytest.mark.parametrize(
    "now", ["taken by another", "taken and given back", "cancelled", "removed", "another queue"]
)
def test_one_that_is_somebody_elses_by_now_is_not(
    conn: psycopg.Connection, work: PostgresWork, now: str
) -> None:
    job = enqueue(conn)
    [claim] = work.claim(["q.ok"], 5)
    lose(conn, job)
    if now.startswith("taken"):
        [other] = work.claim(["q.ok"], 5)
        if now == "taken and given back":
            work.give_back([other])
    elif now == "cancelled":
        conn.execute("select weirkeeper.cancel_jobs(array[%s]::bigint[])", (job,))
    elif now == "removed":
        conn.execute("delete from weirkeeper.ready")
    else:
        conn.execute("update weirkeeper.ready set queue = 'other'")
    assert work.retake([claim]) == set()
    assert work.finish([Finish(job, claim.token)]) == 0, "its end is fenced"


@pytest.mark.parametrize("free", [True, False])
def test_one_with_a_concurrency_key_is_held_again_only_while_the_key_has_a_place(
    conn: psycopg.Connection, work: PostgresWork, free: bool
) -> None:
    first, second = (
        conn.execute("select weirkeeper.enqueue('q.ok', concurrency_key => 'k')").fetchone()[0]
        for _ in range(2)
    )
    [claim] = work.claim(["q.ok"], 1)
    assert claim.job_id == first
    lose(conn, first)
    if not free:  # the other one goes first
        conn.execute(
            "update weirkeeper.ready set seq = nextval('weirkeeper.ready_seq') where job_id = %s",
            (first,),
        )
        assert [c.job_id for c in work.claim(["q.ok"], 1)] == [second]
    assert work.retake([claim]) == ({first} if free else set())
    where = conn.execute(
        "select 'running', key from weirkeeper.running where job_id = %(job)s"
        " union all select 'parked', key from weirkeeper.parked where job_id = %(job)s",
        {"job": first},
    ).fetchall()
    assert where == [("running" if free else "parked", "k")]
