"""A long line stays cheap to claim from, even with a plan that was made while there was none."""

from __future__ import annotations

import time

import psycopg
import pytest

from shared.postgres.claims import Claims
from shared.postgres.connect import Use, connect

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
