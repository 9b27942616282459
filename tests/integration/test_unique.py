"""Unique jobs: who is the same, for how long, what releases it, and who may come back."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

import weirkeeper
from shared.errors import InvalidArguments
from shared.jobs.options import Unique
from shared.jobs.work import Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import finish
from shared.postgres.queues.promotions import promote
from shared.postgres.queues.rescues import rescue
from tests.support.unique import EPOCH, KIND, UNIQUE, add, cancel, claim, count, run
from tests.support.waiting import until


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


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


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


def test_a_twin_that_comes_back_never_breaks_a_batch(conn, database_url):
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
