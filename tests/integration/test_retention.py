"""Retention: what goes, what stays, in batches that nobody waits for, through indexes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from shared.jobs.port import EnqueueOpts, Unique
from shared.postgres import retention
from shared.postgres.claims import Claims
from shared.postgres.connect import Connection, Use, connect
from shared.postgres.inspector import PostgresInspector
from shared.postgres.jobs import PostgresJobs
from shared.postgres.statements import statement

KIND = "corpus.index"
DAY = 86_400.0
WEEK = 7 * DAY


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HANDLER) as opened:
        yield opened


def never() -> bool:
    return False


def job(conn: Connection, state: str | None, hours: float, **opts: object) -> int:
    """A job that was enqueued, and ended in this state, so many hours ago."""
    number = int(PostgresJobs(conn).enqueue(KIND, {"n": 1}, EnqueueOpts(**opts)))  # type: ignore[arg-type]
    age(conn, number, hours)
    if state is not None:
        end(conn, number, state, hours)
    return number


def age(conn: Connection, number: int, hours: float) -> None:
    conn.execute(
        "update weirkeeper.job set created_at = now() - make_interval(secs => %s) where id = %s",
        (hours * 3600 + 1, number),
    )


def end(conn: Connection, number: int, state: str, hours: float) -> None:
    conn.execute("delete from weirkeeper.ready where job_id = %s", (number,))
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, finished_at)"
        " select %s, coalesce(max(run), 0) + 1, 1, case %s when 'completed' then 'completed'"
        "   when 'cancelled' then 'cancelled' else 'failed' end, %s,"
        "   now() - make_interval(secs => %s)"
        " from weirkeeper.attempt where job_id = %s",
        (number, state, state, hours * 3600, number),
    )


def left(conn: Connection) -> set[int]:
    return {row[0] for row in conn.execute("select id from weirkeeper.job")}


def count(conn: Connection, table: str) -> int:
    return conn.execute(f"select count(*) from weirkeeper.{table}").fetchone()[0]


def prune(conn: Connection, completed: float = DAY, ended: float = WEEK) -> int:
    return retention.prune_jobs(conn, completed, ended, never).rows


def test_ended_jobs_go_after_their_time_and_others_never(conn):
    old = [job(conn, "completed", 25), job(conn, "discarded", 170), job(conn, "cancelled", 170)]
    kept = [
        job(conn, "completed", 23),
        job(conn, "discarded", 160),
        job(conn, "cancelled", 160),
        job(conn, "retryable", 2000),  # no final state, in no line: verify's affair
        job(conn, None, 2000),  # still in line
    ]
    assert prune(conn) == len(old)
    assert left(conn) == set(kept)
    assert {row[0] for row in conn.execute("select job_id from weirkeeper.attempt")} == set(
        kept[:-1]
    )


def test_the_newest_word_on_a_job_decides(conn):
    failed_then_completed = job(conn, "retryable", 60)
    end(conn, failed_then_completed, "completed", 25)
    just_ended = job(conn, "retryable", 600)
    end(conn, just_ended, "completed", 1)
    assert prune(conn) == 1
    assert left(conn) == {just_ended}


def test_a_job_that_was_retried_by_hand_stays_until_it_has_ended_anew(conn):
    number = job(conn, "discarded", 200)
    PostgresInspector(conn).retry(str(number))
    assert prune(conn) == 0
    end(conn, number, "completed", 25)
    assert prune(conn) == 1


def test_retry_and_prune_of_one_job_at_once_never_leave_half_of_it(conn, database_url):
    """Whoever comes first: pruned and not found, or in line and whole."""
    for turn in range(40):
        number = job(conn, "discarded", 200)
        gate = threading.Barrier(2)

        def retry(number=number, gate=gate) -> None:
            with psycopg.connect(database_url, autocommit=True) as own:
                gate.wait()
                own.execute("select * from weirkeeper.retry_jobs(array[%s::bigint])", (number,))

        thread = threading.Thread(target=retry)
        thread.start()
        gate.wait()
        prune(conn)
        thread.join()
        in_line = conn.execute(
            "select count(*) from weirkeeper.ready where job_id = %s", (number,)
        ).fetchone()[0]
        assert (number in left(conn)) == (in_line == 1), turn


def test_uniqueness_lasts_as_long_as_the_job(conn):
    number = job(conn, "completed", 23, unique=Unique())
    again = PostgresJobs(conn).enqueue(KIND, {"n": 1}, EnqueueOpts(unique=Unique()))
    assert again == str(number)
    assert prune(conn) == 0
    assert prune(conn, completed=22 * 3600) == 1
    assert count(conn, "unique_key") == 0
    again = PostgresJobs(conn).enqueue(KIND, {"n": 1}, EnqueueOpts(unique=Unique()))
    assert again != str(number)


def test_the_last_five_starts_of_a_periodic_stay(conn):
    name = "weirkeeper.prune_jobs"
    numbers = [
        conn.execute("select weirkeeper.run_periodic(%s)", (name,)).fetchone()[0] for _ in range(7)
    ]
    for number in numbers:
        age(conn, number, 100)
        end(conn, number, "completed", 100)
    assert prune(conn) == 2
    assert left(conn) == set(numbers[2:])
    conn.execute("update weirkeeper.periodic_tick set tick_at = tick_at - interval '8 days'")
    assert retention.prune_records(conn, WEEK, never)["ticks"] == 2
    assert count(conn, "periodic_tick") == 5


def fill(conn: Connection, number: int, hours: float = 30) -> None:
    """Many jobs that completed so long ago."""
    conn.execute(
        "with made as ("
        "  insert into weirkeeper.job (kind, queue, max_attempts, timeout_ms, awaited, created_at)"
        "  select 'corpus.index', 'index', 3, 1000, false, now() - make_interval(secs => %s)"
        "  from generate_series(1, %s) returning id)"
        " insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, finished_at)"
        " select id, 1, 1, 'completed', 'completed', now() - make_interval(secs => %s) from made",
        (hours * 3600 + 1, number, hours * 3600),
    )


def test_batches_are_committed_one_by_one_and_what_is_held_is_passed_over(conn, database_url):
    fill(conn, 12_000)
    with psycopg.connect(database_url) as holder:
        held = holder.execute(
            "select id from weirkeeper.job order by id limit 3 for update"
        ).fetchall()
        answers = iter((False, True))
        first = retention.prune_jobs(conn, DAY, WEEK, lambda: next(answers))
        assert first == retention.Pruned(5000 - 3, whole=False)
        assert count(conn, "job") == 7003  # seen by the others before the next batch begins
        rest = retention.prune_jobs(conn, DAY, WEEK, never)
        assert rest == retention.Pruned(7000, whole=True)
        assert left(conn) == {row[0] for row in held}
    assert prune(conn) == 3


def test_no_batch_looks_at_the_jobs_behind_the_old_ones(conn):
    fill(conn, 10)
    fill(conn, 5000 * 4, hours=1)
    pages = []
    after = 0
    while True:
        params = {"after": after, "size": 5000, "completed": DAY, "ended": WEEK}
        after, _, more = conn.execute(statement("retention/prune_jobs"), params).fetchone()
        pages.append(after)
        if not more:
            break
    assert len(pages) == 2


def event(conn: Connection, hours: float, jobs: dict[str, int] | None) -> str:
    """An event of so long ago; fanned out to these jobs, or not at all (None)."""
    [number] = conn.execute(
        "select weirkeeper.record_event('corpus.note.changed', null, 'a')"
    ).fetchone()
    if jobs is not None:
        conn.execute("delete from weirkeeper.event_pending where event_id = %s", (number,))
        conn.execute(
            "insert into weirkeeper.event_fanout (event_id, jobs, fanned_out_at)"
            " values (%s, %s, now() - make_interval(secs => %s))",
            (number, json.dumps(jobs), hours * 3600),
        )
    return str(number)


def test_events_go_a_week_after_their_fan_out(conn):
    done = job(conn, "completed", 1)
    waits = job(conn, None, 1)
    old = [event(conn, 169, {}), event(conn, 169, {"corpus.index": done})]
    old.append(event(conn, 169, {"corpus.index": 10**9}))  # its job was pruned long ago
    kept = [
        event(conn, 167, {}),
        event(conn, 2000, None),
        event(conn, 2000, {"corpus.index": done, "other": waits}),
    ]
    poisoned = event(conn, 2000, {})
    conn.execute(
        "insert into weirkeeper.event_failure (event_id, failures, poisoned_at) values (%s, 5, now())",
        (poisoned,),
    )
    done = retention.prune_events(conn, WEEK, never)
    assert done == retention.Pruned(len(old), whole=True)
    rows = {str(row[0]) for row in conn.execute("select id from weirkeeper.event")}
    assert rows == {*kept, poisoned}
    assert count(conn, "event_fanout") == 3


@pytest.mark.parametrize("place", ["scheduled", "parked", "running"])
def test_an_event_that_an_unfinished_job_names_stays_wherever_the_job_is(conn, place):
    number = job(conn, None, 1)
    event(conn, 300, {"corpus.index": number})
    conn.execute("delete from weirkeeper.ready")
    if place == "parked":
        conn.execute("insert into weirkeeper.key (name, max_n) values ('k', 1)")
    conn.execute(
        {
            "scheduled": "insert into weirkeeper.scheduled"
            " values (%s, now(), 'index', 'corpus.index', 2, 0, 0, 'retry')",
            "parked": "insert into weirkeeper.parked"
            " values (%s, 'k', 'index', 'corpus.index', 2, 0, 0)",
            "running": "insert into weirkeeper.running"
            " (job_id, run, attempt, queue, kind, priority, epoch, token)"
            " values (%s, 1, 0, 'index', 'corpus.index', 2, 1, 1)",
        }[place],
        (number,),
    )
    assert retention.prune_events(conn, WEEK, never).rows == 0
    conn.execute(f"delete from weirkeeper.{place}")
    assert retention.prune_events(conn, WEEK, never).rows == 1


def test_thousands_of_events_of_one_moment_go_page_by_page(conn):
    conn.execute(
        "with made as (insert into weirkeeper.event (seq, type, subject)"
        "  select -n, 'corpus.note.changed', 'a' from generate_series(1, 12000) n returning id)"
        " insert into weirkeeper.event_fanout (event_id, jobs, fanned_out_at)"
        " select id, '{}', now() - interval '8 days' from made"
    )
    assert retention.prune_events(conn, WEEK, never) == retention.Pruned(12_000, whole=True)
    assert count(conn, "event") == 0


def process(conn: Connection, days: float, phase: str = "stopped", kinds: str = "{}") -> int:
    [epoch] = conn.execute(
        "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
        " pid_started, version, phase, connections, beat_at, kinds)"
        " values ('queue', 's', 'h', 'b', 1, 1, 1, '1', %s, 1, now() - make_interval(secs => %s), %s)"
        " returning epoch",
        (phase, days * DAY, kinds),
    ).fetchone()
    conn.execute(
        "insert into weirkeeper.drain (epoch, role, slot, started_at, finished_at, phases, jobs)"
        " values (%s, 'queue', 's', now(), now() - make_interval(secs => %s), '{}', '{}')",
        (epoch, days * DAY),
    )
    return epoch


def test_rows_of_processes_and_drains_go_but_never_an_owner(conn):
    process(conn, 8)
    owner = process(conn, 8, "ready")
    kept = process(conn, 6)
    conn.execute(
        "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
        " values (1, 1, 0, 'index', 'corpus.index', 2, %s, 1)",
        (owner,),
    )
    done = retention.prune_records(conn, WEEK, never)
    assert (done["processes"], done["drains"]) == (1, 2)
    assert {r[0] for r in conn.execute("select epoch from weirkeeper.process")} == {owner, kept}


# ── unknown kinds ──


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


# ── plans and pace ──


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


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_million_expired_jobs_are_gone_in_minutes_in_short_statements(conn):
    for _ in range(10):
        fill(conn, 100_000)
    conn.execute("set statement_timeout = '5s'")
    begun = time.perf_counter()
    assert prune(conn) == 1_000_000
    assert time.perf_counter() - begun < 360  # five million in half an hour, and no slower later
