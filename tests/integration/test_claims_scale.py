"""A long line stays cheap to claim from, even with a plan that was made while there was none."""

from __future__ import annotations

import statistics
import time

import psycopg
import pytest

from shared.jobs.work import Finish
from shared.postgres.claims import Claims
from shared.postgres.completions import finish
from shared.postgres.connect import Use, connect
from tests.support.waiting import until

KIND = "corpus.index"
CLAIMS = 15


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as opened:
        yield opened


def add(conn, count):
    conn.execute(
        "insert into weirkeeper.job (kind, args)"
        " select 'corpus.index', '{}' from generate_series(1, %s)",
        [count],
    )


def claim_time(claims):
    """Seconds of the fastest of some full claims: other programs only ever slow them."""
    taken = []
    for _ in range(CLAIMS):
        began = time.perf_counter()
        assert len(claims.claim([KIND], 100)) == 100
        taken.append(time.perf_counter() - began)
    return min(taken)


def test_the_plan_made_on_an_empty_queue_is_right_for_a_full_one(conn, database_url):
    for table in ("ready", "job", "running"):
        conn.execute(f"vacuum analyze weirkeeper.{table}")
        conn.execute(f"alter table weirkeeper.{table} set (autovacuum_enabled = off)")
    with connect(database_url, "test", Use.HOT) as session:
        claims = Claims(session, "index", 1)
        for _ in range(8):
            assert claims.claim([KIND], 100) == []
        add(conn, 100 * CLAIMS + 500)
        few = claim_time(claims)
        add(conn, 40_000)
        many = claim_time(claims)
    assert many < 2 * few + 0.002, f"{few * 1000:.1f} → {many * 1000:.1f} ms"


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "jobs", [10_000, pytest.param(300_000, marks=[pytest.mark.slow, pytest.mark.soak])]
)
def test_dead_rows_that_an_old_snapshot_keeps_do_not_slow_claims(conn, database_url, jobs):
    """Vacuum cannot take what a reader might still see; neither work nor idle looks pass over it."""
    with (
        psycopg.connect(database_url) as reader,
        connect(database_url, "test", Use.HOT) as session,
    ):
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from weirkeeper.job")
        add(conn, jobs)
        claims = Claims(session, "index", 1)
        taken = []
        for _ in range(jobs // 100):
            began = time.perf_counter()
            batch = claims.claim([KIND], 100)
            taken.append(time.perf_counter() - began)
            finish(session, 1, [Finish(c.job_id, c.token) for c in batch])
        part = len(taken) // 5
        first, last = (statistics.median(p) for p in (taken[:part], taken[-part:]))
        assert last < 2 * first + 0.001, f"{first * 1000:.2f} → {last * 1000:.2f} ms"

        assert claims.claim([KIND], 100) == []
        dead = jobs - 100
        until(lambda: _risen(claims) >= dead, 30, "the floor has risen past the dead rows")
        with_floor = min(_look(claims) for _ in range(9))
        without = []
        for _ in range(9):
            claims._floors.reset()
            without.append(_look(claims))
        assert with_floor < min(without) / 1.5, (
            f"{with_floor * 1e3:.2f}, {min(without) * 1e3:.2f} ms"
        )


def _risen(claims):
    claims.claim([KIND], 100)
    return claims._floors.of((KIND, 2))


def _look(claims):
    began = time.perf_counter()
    claims.claim([KIND], 100)
    return time.perf_counter() - began
