"""What retention costs: plans of its statements, and that claims do not notice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.queues import retention
from shared.postgres.queues.claims import Claims
from tests.support.bounds import at_most
from tests.support.past import DAY, KIND, WEEK, fill, never


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HANDLER) as opened:
        yield opened


def prune(conn: Connection) -> int:
    return retention.prune_jobs(conn, DAY, WEEK, never).rows


PLANS = {
    "retention/prune_processes": {"age": 1, "size": 10},
    "retention/prune_drains": {"age": 1, "size": 10},
    "retention/prune_ticks": {"age": 1, "size": 10},
    "retention/discard_unknown": {"known": ["a"], "lease": 17, "horizon": 1, "size": 10},
}


@pytest.mark.parametrize("name", PLANS)
def test_statements_go_through_an_index(conn, name):
    conn.execute("set enable_seqscan = off")  # the tables are empty here
    rows = conn.execute("explain " + statement(name), PLANS[name]).fetchall()
    whole = [row[0] for row in rows if "Seq Scan on" in row[0]]
    # What lives and what runs is small by nature.
    assert [line for line in whole if " on process" not in line and " on running" not in line] == []
    assert any("Index" in row[0] for row in rows)


def inner_plans(conn: Connection, name: str, params: dict[str, object]) -> str:
    """Plans of what a function runs inside."""
    said: list[str] = []
    conn.add_notice_handler(lambda diag: said.append(diag.message_primary or ""))
    conn.execute("load 'auto_explain'")
    conn.execute("set auto_explain.log_min_duration = 0")
    conn.execute("set auto_explain.log_nested_statements = on")
    conn.execute("set client_min_messages = log")
    conn.execute(statement(name), params)
    conn.execute("reset client_min_messages")
    return "\n".join(said)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("retention/prune_jobs", {"after": 0, "size": 500, "completed": DAY, "ended": WEEK}),
        (
            "retention/prune_events",
            {
                "after_at": "-infinity",
                "after_id": "00000000-0000-0000-0000-000000000000",
                "size": 500,
                "age": WEEK,
            },
        ),
    ],
)
def test_a_batch_reads_no_table_whole(conn, name, params):
    fill(conn, 30_000)
    conn.execute(
        "with made as (insert into weirkeeper.event (seq, type, subject)"
        "  select -n, 'corpus.note.changed', 'a' from generate_series(1, 30000) n returning id)"
        " insert into weirkeeper.event_fanout (event_id, jobs, fanned_out_at)"
        " select id, '{\"corpus.index\": 7}', now() - interval '8 days' from made"
    )
    conn.execute("analyze")
    plans = inner_plans(conn, name, params)
    assert "Index" in plans
    for table in ("job", "attempt", "event", "event_fanout"):
        assert f"Seq Scan on {table} " not in plans, plans


def test_claims_are_quick_while_much_is_pruned(conn, database_url):
    """The batch holds no lock that a claim wants: the same claims, with and without it."""
    fill(conn, 60_000)

    def claims(number: int) -> list[float]:
        took = []
        with connect(database_url, "claims", Use.HOT) as own:
            claimer = Claims(own, "index", 1)
            for _ in range(number):
                PostgresJobs(own).enqueue(KIND, {})
                begun = time.perf_counter()
                assert claimer.claim([KIND], 10)
                took.append(time.perf_counter() - begun)
        return sorted(took)

    alone = claims(150)
    result: list[int] = []
    thread = threading.Thread(target=lambda: result.append(prune(conn)))
    thread.start()
    beside = claims(150)
    thread.join()
    assert result == [60_000]
    p99 = -2
    assert beside[p99] < max(0.05, 5 * alone[p99])


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("millions", [1, 5])
def test_millions_of_expired_jobs_are_gone_in_minutes_in_short_statements(
    conn, database_url, millions
):
    """Claims go on beside it, of a hundred 99 within 50 ms."""
    for _ in range(10 * millions):
        fill(conn, 100_000)
    conn.execute("set statement_timeout = '5s'")
    took: list[float] = []
    done = threading.Event()

    def work() -> None:
        with connect(database_url, "claims", Use.HOT) as own:
            claimer = Claims(own, "index", 1)
            while not done.wait(0.01):
                PostgresJobs(own).enqueue(KIND, {})
                began = time.perf_counter()
                assert claimer.claim([KIND], 10)
                took.append(time.perf_counter() - began)

    thread = threading.Thread(target=work)
    thread.start()
    begun = time.perf_counter()
    try:
        assert prune(conn) == millions * 1_000_000
    finally:
        done.set()
        thread.join()
    spent = time.perf_counter() - begun
    p99 = sorted(took)[len(took) * 99 // 100]
    print(f"{spent:.0f} s; of {len(took)} claims p99 {p99 * 1e3:.1f} ms")
    assert spent < 360 * millions  # five million in half an hour, and no slower later
    assert p99 < at_most(0.05, busy=1)
