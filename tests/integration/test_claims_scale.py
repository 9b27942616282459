"""A long line stays cheap to claim from, even with a plan that was made while there was none."""

from __future__ import annotations

import re
import struct
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from shared.jobs.work import Finish
from shared.postgres.driver.connect import Use, connect
from shared.postgres.inspection.gauges import areas, open_gauges
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import finish
from tests.support.bounds import at_most
from tests.support.cluster import FAST, ThrowawayCluster
from tests.support.databases import Databases
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


@contextmanager
def snapshot(url):
    """A reader in REPEATABLE READ; the pid of its session."""
    with psycopg.connect(url) as reader:
        reader.execute("set transaction isolation level repeatable read")
        reader.execute("select count(*) from weirkeeper.job")
        yield reader.info.backend_pid


@contextmanager
def prepared(url):
    """A transaction that is prepared and forgotten."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("begin")
        other.execute("select pg_current_xact_id()")
        other.execute("prepare transaction 'forgotten'")
        yield "forgotten"
        other.execute("rollback prepared 'forgotten'")


@contextmanager
def slot(url):
    """A replication slot whose standby told what it still reads, and went away."""
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("select pg_create_physical_replication_slot('gone', true)")
        lsn, xid = other.execute(
            "select pg_current_wal_lsn()::text, pg_snapshot_xmin(pg_current_snapshot())::text::int8"
        ).fetchone()
        standby = psycopg.connect(url, autocommit=True, replication="database")
        standby.pgconn.exec_(f"START_REPLICATION SLOT gone PHYSICAL {lsn}".encode())
        feedback = struct.pack("!cqIIII", b"h", 0, xid & 0xFFFFFFFF, xid >> 32, 0, 0)
        standby.pgconn.put_copy_data(feedback)
        standby.pgconn.flush()
        look = "select xmin is not null from pg_replication_slots where slot_name = 'gone'"
        until(lambda: other.execute(look).fetchone() == (True,), 10, "the slot holds the xmin")
        standby.close()
        yield "gone"
        idle = "select not active from pg_replication_slots where slot_name = 'gone'"
        until(lambda: other.execute(idle).fetchone() == (True,), 10, "nobody uses the slot")
        other.execute("select pg_drop_replication_slot('gone')")


def told(conn):
    """Who holds an old snapshot, by the statements that docs/operations.md gives to its reader."""
    page = (Path(__file__).parents[2] / "docs/operations.md").read_text()
    chapter = page.partition("\n## An old snapshot is held\n")[2].partition("\n## ")[0]
    [statements] = re.findall(r"```sql\n(.*?)```", chapter, re.DOTALL)
    return [row for text in statements.split(";\n") if text for row in conn.execute(text)]


def gauges(url):
    with open_gauges(url, "test") as reader:
        return {r.name: r.value for r in areas([KIND])["server"](reader)}


def test_who_holds_an_old_snapshot_is_told_with_its_pid(alone):
    """By the gauge that the alert goes by, at 60 s, and by what the alert has one read."""
    url = alone.create()
    with psycopg.connect(url, autocommit=True) as conn, snapshot(url) as pid:
        begun = time.monotonic()
        assert pid in [row[0] for row in told(conn)]
        first = gauges(url)["db_xmin_age_seconds"]
        until(lambda: gauges(url)["db_xmin_age_seconds"] > first + 0.2, 10, "it grows with time")
        assert gauges(url)["db_xmin_age_seconds"] < time.monotonic() - begun + 5
    until(lambda: gauges(url)["db_xmin_age_seconds"] < 0.2, 10, "the snapshot is gone")


@pytest.fixture(scope="module")
def alone():
    """A server of its own: a slot and a prepared transaction hold up every database of theirs."""
    cluster = ThrowawayCluster({**FAST, "max_prepared_transactions": "2"})
    yield Databases(cluster.url)
    cluster.stop()


def work_off(session, jobs):
    """Run so many jobs; the fastest claim of the first and of the last fifth, in seconds.

    Other programs only ever slow one; dead rows that claims pass over slow every one.
    Of a hundred claims 99 take at most 50 ms each, whoever holds a snapshot.
    """
    claims, taken = Claims(session, "index", 1), []
    for _ in range(jobs // 100):
        began = time.perf_counter()
        batch = claims.claim([KIND], 100)
        taken.append(time.perf_counter() - began)
        finish(session, 1, [Finish(c.job_id, c.token) for c in batch])
    assert sorted(taken)[len(taken) * 99 // 100] < at_most(0.05, busy=2)
    part = len(taken) // 5
    first, last = min(taken[:part]), min(taken[-part:])
    return claims, first, last


@pytest.mark.parametrize("hold", [prepared, slot])
def test_nor_do_those_that_something_forgotten_keeps(alone, hold):
    url = alone.create()
    with (
        hold(url) as name,
        psycopg.connect(url, autocommit=True) as conn,
        connect(url, "test", Use.HOT) as session,
    ):
        add(conn, 10_000)
        _, first, last = work_off(session, 10_000)
        conn.execute("vacuum weirkeeper.ready")
        dead = "select n_dead_tup from pg_stat_user_tables where relname = 'ready'"
        until(lambda: conn.execute(dead).fetchone()[0] >= 10_000, 10, "all of them are kept")
        assert last < 2 * first + 0.001, f"{first * 1000:.2f} → {last * 1000:.2f} ms"
        assert gauges(url)["db_xmin_age_transactions"] >= 200, "each claim and finish was one"
        assert name in [row[0] for row in told(conn)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "jobs", [10_000, pytest.param(300_000, marks=[pytest.mark.slow, pytest.mark.soak])]
)
def test_dead_rows_that_an_old_snapshot_keeps_do_not_slow_claims(conn, database_url, jobs):
    """Vacuum cannot take what a reader might still see; neither work nor idle looks pass over it."""
    with snapshot(database_url), connect(database_url, "test", Use.HOT) as session:
        add(conn, jobs)
        claims, first, last = work_off(session, jobs)
        assert last < 2 * first + 0.001, f"{first * 1000:.2f} → {last * 1000:.2f} ms"

        assert claims.claim([KIND], 100) == []
        dead = jobs - 100
        until(lambda: _risen(claims) >= dead, 30, "the floor has risen past the dead rows")
        with_floor = min(_look(claims) for _ in range(9))
        without = [_swept(claims) for _ in range(9)]
        assert with_floor < min(without) / 1.5, (
            f"{with_floor * 1e3:.2f}, {min(without) * 1e3:.2f} ms"
        )
    # The reader is gone: one vacuum later even the sweep from the beginning is what it always was.
    with connect(database_url, "test", Use.HOT) as session:
        conn.execute("vacuum weirkeeper.ready")
        claims = Claims(session, "index", 1)
        again = min(_swept(claims) for _ in range(9))
        assert again < max(min(without) / 1.5, 2 * with_floor), f"{again * 1e3:.2f} ms"


def _risen(claims):
    claims.claim([KIND], 100)
    claims.tidy()
    return claims._floors.of((KIND, 2))


def _swept(claims):
    """A look that begins at the very beginning."""
    claims._floors.reset()
    return _look(claims)


def _look(claims):
    began = time.perf_counter()
    claims.claim([KIND], 100)
    return time.perf_counter() - began
