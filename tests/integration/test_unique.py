"""Unique jobs: who is the same, for how long, what releases it, and what concurrent callers see."""

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

import weirkeeper
from shared.errors import Conflict, DatabaseUnavailable, InvalidArguments
from shared.jobs.options import EnqueueOpts, Unique
from shared.jobs.work import Finish
from shared.postgres.claims import Claims
from shared.postgres.completions import finish
from shared.postgres.connect import Connection, Use, connect
from shared.postgres.jobs import PostgresJobs
from shared.postgres.promotions import promote
from shared.postgres.rescues import rescue
from tests.support.waiting import until

KIND = "corpus.index"
UNIQUE = EnqueueOpts(unique=Unique())
EPOCH = 1


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


def add(conn: Any, args: dict[str, Any] | None = None, kind: str = KIND, **unique: Any) -> str:
    opts = EnqueueOpts(unique=Unique(**unique))
    return PostgresJobs(conn).enqueue(kind, args or {}, opts)


def claim(conn: Connection, *kinds: str) -> Any:
    [claimed] = Claims(conn, "index", EPOCH).claim(kinds or [KIND], 1)
    return claimed


def run(conn: Connection, outcome: str, state: str, delay: float | None = None) -> None:
    """Claim the one job that waits, and end its run so."""
    claimed = claim(conn)
    ended = Finish(claimed.job_id, claimed.token, outcome, state, delay)
    assert finish(conn, EPOCH, [ended]) == 1


def waits_for_a_lock(conn: Connection, backend: int) -> bool:
    row = conn.execute(
        "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s", (backend,)
    ).fetchone()
    return bool(row and row[0])


def count(conn: Connection) -> int:
    return conn.execute("select count(*) from weirkeeper.job").fetchone()[0]


def blocked(
    conn: Connection, pool: ThreadPoolExecutor, session: Any, act: Callable[[], Any]
) -> Future:
    """Start something that has to wait for another transaction; return when it waits."""
    future = pool.submit(act)
    backend = session.info.backend_pid
    until(lambda: waits_for_a_lock(conn, backend) or future.done(), 10, "the second caller waits")
    assert not future.done(), future.result()
    return future


# ── who is the same ─────────────────────────────────────────────────────────────────────────────


def test_the_same_id_comes_back_while_waiting_running_and_after_completion(conn):
    first = add(conn, {"n": 1})
    assert add(conn, {"n": 1}) == first
    claimed = claim(conn)
    assert add(conn, {"n": 1}) == first
    finish(conn, EPOCH, [Finish(claimed.job_id, claimed.token)])
    assert add(conn, {"n": 1}) == first
    assert count(conn) == 1


def test_the_same_id_comes_back_while_it_is_retried(conn):
    first = add(conn)
    run(conn, "failed", "retryable", 60.0)
    assert add(conn) == first


def test_other_args_another_kind_and_jobs_not_unique_are_others(conn):
    first = add(conn, {"n": 1})
    others = [
        add(conn, {"n": 2}),
        add(conn, {"n": 1, "m": None}),
        add(conn, {"n": 1}, "corpus.reindex"),
        PostgresJobs(conn).enqueue(KIND, {"n": 1}),
        PostgresJobs(conn).enqueue(KIND, {"n": 1}),
    ]
    assert len({first, *others}) == 6


def test_the_order_of_keys_does_not_matter_and_numbers_beyond_2_53_do(conn):
    assert add(conn, {"a": 1, "b": [1, {"c": 2}]}) == add(conn, {"b": [1, {"c": 2}], "a": 1})
    assert add(conn, {"n": 2**60}) != add(conn, {"n": 2**60 + 1})


def test_by_some_keys_only(conn):
    first = add(conn, {"note": 7, "why": "edit"}, by=("note",))
    assert add(conn, {"note": 7, "why": "import"}, by=("note",)) == first
    assert add(conn, {"note": 8, "why": "edit"}, by=("note",)) != first
    assert add(conn, {"why": "edit"}, by=("note",)) not in (first, None)
    assert add(conn, {"note": None}, by=("note",)) != add(conn, {}, by=("note",))
    # Other keys are another question: neither answers for the other.
    assert add(conn, {"note": 7, "why": "edit"}) != first
    assert add(conn, {"a": 1, "b": 2}, by=("a", "b")) == add(conn, {"b": 2, "a": 1}, by=("b", "a"))


def test_within_a_period(conn):
    first = add(conn, period=86_400 * 366)
    assert add(conn, period=86_400 * 366) == first
    assert add(conn, period=1) != first
    hashes = conn.execute(
        "select weirkeeper.unique_hash('k', '{}', period => '1 second') from generate_series(1, 1)"
    ).fetchone()
    until(
        lambda: conn.execute(
            "select weirkeeper.unique_hash('k', '{}', period => '1 second')"
        ).fetchone() != hashes,
        5,
        "the next period has another key",
    )  # fmt: skip


# ── what releases it ────────────────────────────────────────────────────────────────────────────


def discard(conn: Connection, job: str) -> None:
    run(conn, "discarded", "discarded")


def rescue_exhausted(conn: Connection, job: str) -> None:
    claim(conn)
    conn.execute("update weirkeeper.running set attempt = 9, started_at = now()")
    assert rescue(conn, {EPOCH: "dead"}) == {"dead": 1}


def cancel(conn: Connection, job: str) -> None:
    conn.execute("select weirkeeper.cancel_jobs(array[%s::bigint])", (job,))


def cancel_running(conn: Connection, job: str) -> None:
    claimed = claim(conn)
    cancel(conn, job)
    Claims(conn, "index", EPOCH).give_back([claimed])


def expire(conn: Connection, job: str) -> None:
    conn.execute("update weirkeeper.job set expires_at = now() - interval '1 s'")
    assert Claims(conn, "index", EPOCH).claim([KIND], 5) == []


@pytest.mark.parametrize("end", [discard, rescue_exhausted, cancel, cancel_running, expire])
def test_every_end_but_completion_releases_it(conn, end):
    first = add(conn)
    end(conn, first)
    assert conn.execute("select state from weirkeeper.attempt").fetchone()[0] in (
        "discarded", "cancelled",
    )  # fmt: skip
    second = add(conn)
    assert second != first
    assert add(conn) == second


def test_pruning_releases_it_whatever_it_keeps(conn):
    first = add(conn, states=("pending", "running", "retryable", "completed", "discarded"))
    run(conn, "discarded", "discarded")
    assert add(conn) == first
    assert conn.execute(
        "select weirkeeper.release_unique(array[%s::bigint])", (first,)
    ).fetchone() == (1,)
    assert add(conn) != first


def test_states_say_which_end_releases_it(conn):
    waiting = ("pending", "running", "retryable")
    first = add(conn, states=waiting)
    assert add(conn, states=waiting) == first
    run(conn, "completed", "completed")
    second = add(conn, states=waiting)
    assert second != first
    assert add(conn) == second
    strict = add(conn, {"n": 1}, states=(*waiting, "completed", "cancelled"))
    cancel(conn, strict)
    assert add(conn, {"n": 1}) == strict


def test_a_rolled_back_end_releases_nothing(conn, database_url):
    first = add(conn)
    with psycopg.connect(database_url) as other:
        other.execute("select weirkeeper.cancel_jobs(array[%s::bigint])", (first,))
        other.rollback()
    assert add(conn) == first


# ── a retry by hand ─────────────────────────────────────────────────────────────────────────────


def hold(conn: Connection, *jobs: str) -> list[tuple[int, int]]:
    return conn.execute(
        "select * from weirkeeper.hold_unique(%s::bigint[])", ([int(job) for job in jobs],)
    ).fetchall()


def test_a_retry_by_hand_takes_the_key_back_or_names_who_has_it(conn):
    first, other = add(conn), add(conn, {"n": 2})
    cancel(conn, first)
    cancel(conn, other)
    second = add(conn)
    assert hold(conn, first, other) == [(int(first), int(second))]
    assert add(conn, {"n": 2}) == other
    cancel(conn, second)
    assert hold(conn, first) == []
    assert add(conn) == first


def test_of_two_retried_twins_one_comes_back(conn):
    first = add(conn)
    cancel(conn, first)
    second = add(conn)
    cancel(conn, second)
    assert hold(conn, first, second) == [(int(second), int(first))]


# ── concurrent transactions ─────────────────────────────────────────────────────────────────────


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
    assert conn.execute("select count(*) from weirkeeper.job").fetchone()[0] == len(kept)
    assert conn.execute("select count(*) from weirkeeper.unique_key").fetchone()[0] == len(kept)


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
        assert time.monotonic() - began < 2
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


# ── C90 ─────────────────────────────────────────────────────────────────────────────────────────


def test_c90_a_twin_that_comes_back_never_breaks_a_batch(conn, database_url):
    first = add(conn)
    run(conn, "discarded", "discarded")
    second = add(conn)
    others = [add(conn, {"n": n}) for n in range(5)]
    for other in others:
        cancel(conn, other)
    rows = conn.execute(
        "select job_id::text, state, held_by::text from weirkeeper.retry_jobs(%s::bigint[])"
        " order by job_id",
        ([int(job) for job in (first, *others)],),
    ).fetchall()
    assert rows[0] == (first, "discarded", second)
    assert [state for _, state, _ in rows[1:]] == ["pending"] * 5
    # Nor when a batch that contains it becomes due.
    conn.execute(
        "with gone as (delete from weirkeeper.ready returning *)"
        " insert into weirkeeper.scheduled"
        " select job_id, now(), queue, kind, priority, attempt, run, 'retry' from gone"
    )
    assert promote(conn, "index")[0] == 6
    assert len(Claims(conn, "index", EPOCH).claim([KIND], 10)) == 6


# ── refused ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("unique_by => '{n}'", "unique_by_args => true"),
        ("unique_by_args => true, unique_by => '{}'", "unique_by: expected keys"),
        ("unique_by_args => true, unique_by => '{n,null}'", "unique_by: expected keys"),
        ("unique_by_args => true, unique_period => '0 s'", "unique_period: expected 1 second"),
        ("unique_by_args => true, unique_period => '2 years'", "unique_period"),
        ("unique_by_args => true, unique_states => '{pending}'", "unique_states: expected pending"),
        (
            "unique_by_args => true, unique_states => '{pending,running,retryable,odd}'",
            "unique_states",
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(conn, options, said):
    for call in (
        f"select weirkeeper.enqueue('{KIND}', '{{}}', {options})",
        f"select weirkeeper.enqueue_many('{KIND}', array['{{}}'::jsonb], {options})",
    ):
        with pytest.raises(psycopg.Error, match=said) as refused:
            conn.execute(call)
        assert refused.value.sqlstate == "WK004"
    assert count(conn) == 0


def test_python_refuses_them_before_the_transaction_is_touched(conn):
    for wrong in ({"by": ()}, {"period": 0}, {"states": ("completed",)}):
        with pytest.raises(InvalidArguments):
            Unique(**wrong)
    assert weirkeeper.Jobs(conn).enqueue(KIND, {}, UNIQUE)
