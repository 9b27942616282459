"""Retention: what goes, what stays, in batches that nobody waits for, through indexes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import psycopg
import pytest

from shared.jobs.port import EnqueueOpts, Unique
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues import retention
from tests.support.past import DAY, KIND, WEEK, age, count, end, fill, job, never, process
from tests.support.waiting import until


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HANDLER) as opened:
        yield opened


def left(conn: Connection) -> set[int]:
    return {row[0] for row in conn.execute("select id from weirkeeper.job")}


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


def test_a_retry_between_the_look_and_the_lock_is_seen(conn, database_url):
    """Every order of the two: the look of a batch is held up until the retry has committed."""
    number = job(conn, "discarded", 200)
    conn.execute("alter function weirkeeper.prunable rename to looked")
    conn.execute(
        "create function weirkeeper.prunable(ids bigint[], a timestamptz, b timestamptz)"
        " returns bigint[] language plpgsql as $$ declare found bigint[]; begin"
        " found := weirkeeper.looked(ids, a, b);"
        " perform pg_advisory_xact_lock_shared(4711); return found; end $$"
    )
    with psycopg.connect(database_url, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(4711)")
        thread = threading.Thread(target=prune, args=(conn,))
        thread.start()
        waiting = (
            "select 1 from pg_locks where locktype = 'advisory' and not granted and objid = 4711"
        )
        until(lambda: holder.execute(waiting).fetchone(), 10, "the batch has looked")
        assert PostgresInspector(holder).retry(str(number)) == "retryable"
        holder.execute("select pg_advisory_unlock(4711)")
        thread.join()
    assert left(conn) == {number}
    assert count(conn, "attempt") == 1


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
        conn.execute("insert into weirkeeper.key (name) values ('k')")
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
