"""Claims: order, lanes, late commits, rows that come back; never lost, never doubled."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from shared.app import App, load_app
from shared.backoff import random_token
from shared.jobs.kinds import Kind
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import Finish, finish
from shared.postgres.queues.lines import MOMENT, Lines, OwnersClaims
from shared.postgres.queues.promotions import promote
from shared.postgres.queues.rescues import Beats, dead_owners, rescue
from tests.support.claiming import KIND, add, ids
from tests.support.works import Clock


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


def test_a_claim_carries_the_job_as_one_line_and_moves_it_to_running(conn):
    args = {"text": 'a "quoted"\nline \\ é 漢', "big": 2**70, "deep": [{"x": None}]}
    job = PostgresJobs(conn).enqueue(KIND, args, EnqueueOpts(owner_id='o"1', timeout=3))
    [claim] = Claims(conn, "index", 1).claim([KIND], 10)
    told = json.loads(claim.line)
    assert told["id"] == job
    assert told["args"] == args
    assert told["owner_id"] == 'o"1'
    assert (claim.run, claim.attempt, claim.max_attempts, claim.timeout) == (1, 0, 10, 3.0)
    assert conn.execute("select count(*) from weirkeeper.ready").fetchone() == (0,)
    row = conn.execute("select job_id, run, epoch, token from weirkeeper.running").fetchone()
    assert row == (int(job), 1, 1, claim.token)


def test_priorities_first_then_order_of_enqueue(conn):
    late = add(conn, 2)
    first = add(conn, 2, priority=1)
    last = add(conn, 1, priority=4)
    assert ids(Claims(conn, "index", 1).claim([KIND], 10)) == [*first, *late, *last]


PLANS = ("nestloop", "hashjoin", "mergejoin", "sort", "material", "memoize", "indexscan", "seqscan")


@pytest.fixture
def ten(conn: Connection) -> list[str]:
    """Kinds of one queue."""
    kinds = tuple(Kind(f"k.{letter}", "index", "m:f") for letter in "abcdefghij")
    declare(conn, App(kinds=kinds).merged(load_app(None)).check())
    return [kind.name for kind in kinds]


def served(claims: Claims, kinds: list[str], times: int, limit: int) -> str:
    """Letters of the kinds of so many claims."""
    return "".join(c.kind[-1] for _ in range(times) for c in claims.claim(kinds, limit))


@pytest.mark.parametrize("rated", [False, True])
def test_kinds_take_turns_however_many_others_have_nothing_in_line(conn, ten, rated):
    """Slow jobs are claimed one by one: 'a' must not go first as often as there are kinds."""
    if rated:
        conn.execute(
            "update weirkeeper.kind set rate_n = 1000, rate_ms = 1000 where name like 'k.%'"
        )
    jobs = PostgresJobs(conn)
    for kind in ("k.a", "k.b"):
        jobs.enqueue_many(kind, [{}] * 50)
    clock = Clock()
    claims = Lines(conn, "index", 1, clock)
    first = served(claims, ten, 20, 1)
    assert sorted(first) == ["a"] * 10 + ["b"] * 10
    assert "aa" not in first
    assert "bb" not in first
    jobs.enqueue("k.c", {})
    clock.now += MOMENT  # so long a limited kind is taken to have nothing in line
    assert "c" in served(claims, ten, 2, 1)
    assert Counter(served(claims, ten, 4, 5)) == {"a": 10, "b": 10}


def test_turns_are_of_each_priority(conn, ten):
    """A kind that is served at every claim, for it is urgent, takes nobody's turn in the next."""
    jobs = PostgresJobs(conn)
    for kind, priority in (("k.a", 2), ("k.b", 2), ("k.j", 1)):
        jobs.enqueue_many(kind, [{}] * 20, EnqueueOpts(priority=priority))
    assert Counter(served(Claims(conn, "index", 1), ten, 10, 2)) == {"j": 20}
    jobs.enqueue_many("k.j", [{}] * 20, EnqueueOpts(priority=1))
    claims = Claims(conn, "index", 1)
    assert Counter(served(claims, ten, 1, 21)) == {"j": 20, "a": 1}
    jobs.enqueue("k.j", {}, EnqueueOpts(priority=1))
    assert served(claims, ten, 1, 2) == "jb"


@pytest.mark.parametrize("how", [Claims, OwnersClaims])
@pytest.mark.parametrize("off", [(), *((plan,) for plan in PLANS), PLANS])
def test_never_more_than_asked_for_under_any_plan(conn, how, off):
    add(conn, 1000)
    conn.execute("update weirkeeper.ready set owner_id = 'o' || job_id % 30")
    conn.execute("analyze")
    for plan in off:
        conn.execute(f"set enable_{plan} = off")
    for limit in (1, 7, 100):
        for _ in range(2):
            assert len(how(conn, "index", 1).claim([KIND], limit)) == limit
    running = conn.execute("select count(*) from weirkeeper.running").fetchone()
    assert running == (216,), "and no row was taken that nobody was told of"


def test_given_back_claims_are_claimed_again_without_an_attempt(conn):
    claims = Claims(conn, "index", 1)
    add(conn, 3)
    first = claims.claim([KIND], 10)
    assert claims.give_back(first) == 3
    assert claims.give_back(first) == 0, "the fence is gone with the row"
    again = claims.claim([KIND], 10)
    assert [(c.attempt, c.run) for c in again] == [(0, 2)] * 3
    assert conn.execute("select count(*) from weirkeeper.attempt").fetchone() == (0,)


def test_only_the_fence_holder_finishes_and_only_once(conn):
    claims = Claims(conn, "index", 1)
    add(conn, 2)
    a, b = claims.claim([KIND], 10)
    assert finish(conn, 2, [Finish(a.job_id, a.token)]) == 0, "another epoch"
    assert finish(conn, 1, [Finish(a.job_id, random_token())]) == 0, "another token"
    failed = Finish(
        b.job_id, b.token, "failed", "retryable", delay=60.0, error="boom", cause="error"
    )
    assert finish(conn, 1, [Finish(a.job_id, a.token), failed]) == 2
    assert finish(conn, 1, [Finish(a.job_id, a.token), failed]) == 0
    rows = conn.execute(
        "select job_id, attempt, outcome, state, error from weirkeeper.attempt order by job_id"
    ).fetchall()
    assert rows == [
        (a.job_id, 1, "completed", "completed", None),
        (b.job_id, 1, "failed", "retryable", "boom"),
    ]
    assert conn.execute("select job_id, attempt, why from weirkeeper.scheduled").fetchall() == [
        (b.job_id, 1, "retry")
    ]


def test_final_outcomes_are_told_in_the_same_transaction(conn):
    with psycopg.connect(conn.info.dsn, password=conn.info.password, autocommit=True) as ear:
        ear.execute("listen weirkeeper_final")
        claims = Claims(conn, "index", 1)
        jobs = add(conn, 150)
        batch = claims.claim([KIND], 200)
        finish(conn, 1, [Finish(c.job_id, c.token) for c in batch])
        told = [n.payload.split(",") for n in ear.notifies(timeout=5, stop_after=2)]
    assert [len(t) for t in told] == [100, 50]
    assert sorted(int(i) for t in told for i in t) == jobs


def test_a_snooze_spends_nothing_and_is_promoted_when_due(conn):
    claims = Claims(conn, "index", 1)
    [job] = add(conn)
    [claim] = claims.claim([KIND], 1)
    snooze = Finish(job, claim.token, "snoozed", "pending", delay=0.05, spent=False)
    assert finish(conn, 1, [snooze]) == 1
    assert claims.claim([KIND], 1) == []
    promoted, due = promote(conn, "index")
    assert (promoted, due is not None and 0 < due <= 0.05) in {(0, True), (1, False)}
    conn.execute("select pg_sleep(0.06)")
    assert promoted + promote(conn, "index")[0] == 1
    [again] = claims.claim([KIND], 1)
    assert (again.attempt, again.run) == (0, 2)


def test_attempts_beyond_a_small_integer_are_counted_and_snoozes_are_not(conn):
    claims = Claims(conn, "index", 1)
    [job] = add(conn, max_attempts=2_000_000)
    conn.execute("update weirkeeper.ready set attempt = 32766, run = 32766")
    for spent in [False] * 5 + [True] * 5:
        [claim] = claims.claim([KIND], 1)
        outcome, state = ("failed", "retryable") if spent else ("snoozed", "pending")
        end = Finish(job, claim.token, outcome, state, delay=0.0, spent=spent)
        assert finish(conn, 1, [end]) == 1
        promote(conn, "index")
    [last] = claims.claim([KIND], 1)
    assert (last.attempt, last.run) == (32771, 32777)


def test_a_job_that_was_given_back_loses_no_try_by_an_owner_that_dies_before_it_begins(conn):
    [job] = add(conn, 1, max_attempts=1)
    claims = Claims(conn, "index", 4711)
    for _ in range(3):
        assert claims.give_back(claims.claim([KIND], 1)) == 1
    claims.claim([KIND], 1)
    assert rescue(conn, {4711: "lease"}) == {"lease": 1}
    [again] = claims.claim([KIND], 1)
    assert (again.job_id, again.attempt) == (job, 0)
    rescue(conn, {4711: "lease"})
    assert claims.claim([KIND], 1) == [], "lost as often as it may be tried"


def test_only_jobs_of_dead_owners_are_rescued_and_only_started_ones_pay(conn):
    add(conn, 2)
    add(conn, 1, max_attempts=1)
    claims = Claims(conn, "index", 4711)
    batch = claims.claim([KIND], 10)
    claims.mark_started([batch[0], batch[2]])
    assert dead_owners(conn, 4711, Beats()) == {}, "never oneself"
    dead = dead_owners(conn, 1, Beats())
    assert dead == {4711: "unregistered"}
    assert rescue(conn, dead) == {"unregistered": 3}
    assert rescue(conn, dead) == {"unregistered": 0}
    assert finish(conn, 4711, [Finish(c.job_id, c.token) for c in batch]) == 0, "late: fenced"
    states = conn.execute(
        "select state, attempt from weirkeeper.attempt order by job_id"
    ).fetchall()
    assert states == [("retryable", 1), ("pending", 0), ("discarded", 1)]
    assert [c.attempt for c in claims.claim([KIND], 10)] == [1, 0]
