"""Unique jobs and concurrent transactions: who waits, who gets which id, what is an error."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

import psycopg
import pytest

from shared.errors import Conflict, DatabaseUnavailable
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from tests.support.unique import KIND, UNIQUE, add, cancel, count, run
from tests.support.waiting import until

WAITING = ("pending", "running", "retryable")


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def waits_for_a_lock(conn: Connection, backend: int) -> bool:
    row = conn.execute(
        "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s", (backend,)
    ).fetchone()
    return bool(row and row[0])


def blocked(
    conn: Connection, pool: ThreadPoolExecutor, session: Any, act: Callable[[], Any]
) -> Future:
    """Start something that has to wait for another transaction; return when it waits."""
    future = pool.submit(act)
    backend = session.info.backend_pid
    until(lambda: waits_for_a_lock(conn, backend) or future.done(), 10, "the second caller waits")
    assert not future.done(), future.result()
    return future


def test_whoever_comes_second_waits_and_gets_the_first_ones_id_when_it_commits(
    conn, database_url, threads
):
    with psycopg.connect(database_url) as one, psycopg.connect(database_url) as two:
        first = add(one)
        future = blocked(conn, threads, two, lambda: add(two))
        one.commit()
        assert future.result(10) == first
        two.commit()
    assert count(conn) == 1


def test_whoever_comes_second_gets_a_job_of_its_own_when_the_first_rolls_back(
    conn, database_url, threads
):
    with psycopg.connect(database_url) as one, psycopg.connect(database_url) as two:
        first = add(one)
        future = blocked(conn, threads, two, lambda: add(two))
        one.rollback()
        second = future.result(10)
        two.commit()
    assert second != first
    assert conn.execute("select id::text from weirkeeper.job").fetchall() == [(second,)]
    assert add(conn) == second


def test_a_holder_cancelled_meanwhile_gives_way(conn, database_url, threads):
    first = add(conn)
    with psycopg.connect(database_url) as one, psycopg.connect(database_url) as two:
        cancel(one, first)
        future = blocked(conn, threads, two, lambda: add(two))
        one.commit()
        second = future.result(10)
        two.commit()
    assert second != first
    assert add(conn) == second


def test_opposite_orders_end_in_a_deadlock_that_trying_again_mends(conn, database_url, threads):
    with psycopg.connect(database_url) as one, psycopg.connect(database_url) as two:
        add(one, {"n": 1})
        add(two, {"n": 2})
        future = blocked(conn, threads, two, lambda: add(two, {"n": 1}))
        errors = []
        for act in (lambda: add(one, {"n": 2}), future.result):
            try:
                act()
            except DatabaseUnavailable as error:
                errors.append(error)
                one.rollback()
                two.rollback()
        [error] = errors
        assert error.sqlstate == "40P01"
        assert error.transient


def test_many_are_taken_in_order_so_that_no_two_callers_wait_in_a_circle(
    conn, database_url, threads
):
    low, high = sorted(
        ({"n": 1}, {"n": 2}),
        key=lambda args: conn.execute(
            "select weirkeeper.unique_hash(%s, %s::jsonb)", (KIND, json.dumps(args))
        ).fetchone(),
    )
    with psycopg.connect(database_url) as one, psycopg.connect(database_url) as two:
        first = add(one, low)
        many = blocked(
            conn, threads, two, lambda: PostgresJobs(two).enqueue_many(KIND, [high, low], UNIQUE)
        )
        second = add(one, high)  # not taken yet by the one that waits
        one.commit()
        assert many.result(10) == [second, first]


@pytest.mark.parametrize("ends", list(itertools.product(("commit", "rollback"), repeat=3)))
def test_of_three_callers_at_once_those_that_commit_have_one_job(conn, database_url, threads, ends):
    kept = set()
    with ExitStack() as stack:
        sessions = [stack.enter_context(psycopg.connect(database_url)) for _ in ends]
        first, *others = sessions
        calls = {first: threads.submit(add, first)}
        calls[first].result(10)
        for session in others:
            calls[session] = blocked(conn, threads, session, partial(add, session))
        for end in ends:
            done = until(
                lambda: next((s for s, call in calls.items() if call.done()), None),
                10, "the next caller has its answer",
            )  # fmt: skip
            job = calls.pop(done).result()
            getattr(done, end)()
            if end == "commit":
                kept.add(job)
    assert len(kept) == ("commit" in ends)
    assert count(conn) == count(conn, "unique_key") == len(kept)


def completed(conn: Connection) -> str:
    """A job that completed, and whose key the next caller takes over."""
    job = add(conn, states=WAITING)
    run(conn, "completed", "completed")
    return job


def test_of_two_that_take_over_from_a_completed_job_none_gets_its_id(conn, database_url, threads):
    old = completed(conn)
    with ExitStack() as stack:
        holder, *callers = (stack.enter_context(psycopg.connect(database_url)) for _ in range(3))
        holder.execute("lock table weirkeeper.attempt in access exclusive mode")
        for caller in callers:
            caller.autocommit = True
        both = [
            blocked(conn, threads, caller, partial(add, caller, states=WAITING))
            for caller in callers
        ]  # before they take over, and after all that they do before that
        holder.commit()
        [new] = {call.result(10) for call in both}
    assert new != old
    assert count(conn) == 2


def test_a_holder_that_is_pruned_meanwhile_gives_way(conn, database_url, threads):
    old = completed(conn)
    with psycopg.connect(database_url) as holder, psycopg.connect(database_url) as caller:
        holder.execute("lock table weirkeeper.attempt in access exclusive mode")
        call = blocked(conn, threads, caller, partial(add, caller, states=WAITING))
        ago = "clock_timestamp()"
        holder.execute(f"select weirkeeper.prune_jobs(0, 500, {ago}, {ago})")
        holder.commit()
        new = call.result(10)
        caller.commit()
    assert new != old
    assert conn.execute("select id::text from weirkeeper.job").fetchall() == [(new,)]


def test_a_serializable_caller_gets_40001_not_a_second_job(conn, database_url):
    with psycopg.connect(database_url) as session:
        session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        session.execute("select 1")
        first = add(conn)
        with pytest.raises(DatabaseUnavailable) as refused:
            add(session)
        assert refused.value.sqlstate == "40001"
        session.rollback()
        assert add(session) == first


def test_who_does_not_want_to_wait_gets_a_conflict_and_keeps_its_savepoint(conn, database_url):
    with psycopg.connect(database_url) as one, psycopg.connect(database_url) as two:
        first = add(one)
        two.execute("create temporary table business (n integer)")
        began = time.monotonic()
        with pytest.raises(Conflict, match="another open transaction"), two.transaction():
            add(two, wait=False)
        assert time.monotonic() - began < 20  # for as long as the other one is open, if it waited
        two.execute("select * from business")
        assert two.execute("show lock_timeout").fetchone() == ("0",)
        one.commit()
        assert add(two, wait=False) == first
        assert add(two, {"n": 2}, wait=False) != first


def test_a_key_that_keeps_being_released_is_an_error_that_passes(conn):
    conn.execute(
        "create function pg_temp.let_go() returns trigger language plpgsql as"
        " $$ begin delete from weirkeeper.unique_key where hash = new.hash; return null; end $$;"
        " create trigger let_go after insert on weirkeeper.unique_key"
        " for each row execute function pg_temp.let_go()"
    )
    with pytest.raises(DatabaseUnavailable, match="released and taken again three times"):
        add(conn)
