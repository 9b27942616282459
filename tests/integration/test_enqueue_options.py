"""Options end to end: expiry, tags, and what numbers and sizes a job may have."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared.errors import InvalidArguments
from shared.jobs.options import EnqueueOpts
from shared.jobs.port import JobFilter
from shared.jobs.work import Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.inspection.verify import violations
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.completions import finish
from shared.postgres.queues.promotions import expire, promote
from shared.postgres.queues.rescues import rescue
from tests.support.claiming import EPOCH, KIND, claim
from tests.support.waiting import until

PAST = timedelta(seconds=-1)


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


@pytest.fixture
def notices(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True) as opened:
        opened.execute("listen weirkeeper_final")
        yield opened


def add(conn: Connection, expires: timedelta | None = None, **opts: Any) -> int:
    moment = None if expires is None else datetime.now(UTC) + expires
    return int(PostgresJobs(conn).enqueue(KIND, {}, EnqueueOpts(expires_at=moment, **opts)))


def ends(conn: Connection) -> list[tuple[Any, ...]]:
    return conn.execute(
        "select job_id, state, outcome, cause, attempt from weirkeeper.attempt"
        " where state = 'discarded' order by job_id"
    ).fetchall()


def discarded(job: int) -> tuple[Any, ...]:
    return (job, "discarded", "discarded", "expired", 0)


def told(notices: psycopg.Connection[Any]) -> list[str]:
    return [n.payload for n in notices.notifies(timeout=5, stop_after=1)]


def rows(conn: Connection, table: str) -> int:
    return conn.execute(f"select count(*) from weirkeeper.{table}").fetchone()[0]


# ── expiry ──────────────────────────────────────────────────────────────────────────────────────


def test_a_claim_discards_what_has_expired_and_goes_on(conn, notices):
    old = [add(conn, PAST) for _ in range(25)]
    alive = [add(conn), add(conn, timedelta(hours=1))]
    assert [c.job_id for c in claim(conn, 4)] == alive
    assert ends(conn) == [discarded(job) for job in old]
    assert ",".join(map(str, old[:4])) in told(notices)
    assert rows(conn, "running") == 2


def test_the_timer_discards_them_at_their_moment_also_in_a_paused_lane(conn, notices):
    conn.execute("select weirkeeper.pause(kind => %s)", (KIND,))
    opts = EnqueueOpts(expires_at=datetime.now(UTC) + timedelta(seconds=0.5))
    jobs = [int(job) for job in PostgresJobs(conn).enqueue_many(KIND, [{}, {}], opts)]
    add(conn)
    moved, due = promote(conn, "index")
    assert moved == 0
    assert 0 < due <= 0.5
    assert ends(conn) == []
    until(lambda: promote(conn, "index") and ends(conn), 5, "they expire")
    assert ends(conn) == [discarded(job) for job in jobs]
    assert told(notices) == [f"{jobs[0]},{jobs[1]}"]
    assert (rows(conn, "ready"), rows(conn, "expiry")) == (1, 0)
    assert promote(conn, "index") == (0, None)


def test_a_scheduled_job_expires(conn):
    later = datetime.now(UTC) + timedelta(hours=1)
    job = add(conn, timedelta(hours=2), run_at=later)
    conn.execute("update weirkeeper.expiry set expires_at = now() - interval '1 s'")
    assert expire(conn, "index") == 1
    assert ends(conn) == [discarded(job)]
    assert rows(conn, "scheduled") == 0


def test_the_next_expiry_is_told_like_the_next_due_job(conn):
    add(conn, timedelta(minutes=3))
    add(conn, run_at=datetime.now(UTC) + timedelta(minutes=2))
    assert 110 < promote(conn, "index")[1] < 121
    add(conn, timedelta(minutes=1))
    assert 50 < promote(conn, "index")[1] < 61


def test_a_parked_job_expires(conn):
    job = add(conn, PAST)
    conn.execute("insert into weirkeeper.key (name) values ('k')")
    conn.execute(
        "with gone as (delete from weirkeeper.ready returning *)"
        " insert into weirkeeper.parked (job_id, key, queue, kind, priority, attempt, run)"
        " select job_id, 'k', queue, kind, priority, attempt, run from gone"
    )
    assert expire(conn, "index") == 1
    assert ends(conn) == [discarded(job)]
    assert rows(conn, "parked") == 0


def test_another_queue_leaves_them_alone(conn):
    add(conn, PAST)
    assert expire(conn, "notify") == 0
    assert rows(conn, "ready") == 1


def test_a_job_that_started_in_time_is_retried_as_any_other(conn):
    job = add(conn, timedelta(hours=1))
    [claimed] = claim(conn)
    ended = Finish(
        job, claimed.token, "failed", "retryable", 0.0, started_at=datetime.now(UTC).timestamp()
    )  # fmt: skip
    finish(conn, EPOCH, [ended])
    conn.execute("update weirkeeper.job set expires_at = now() - interval '1 s'")
    conn.execute("update weirkeeper.expiry set expires_at = now() - interval '1 s'")
    assert expire(conn, "index") == 0
    assert rows(conn, "expiry") == 0
    assert [c.job_id for c in claim(conn)] == [job]


def test_a_job_whose_owner_died_before_it_began_still_expires(conn):
    job = add(conn, timedelta(hours=1))
    claim(conn)
    assert rescue(conn, {EPOCH: "dead"}) == {"dead": 1}
    conn.execute("update weirkeeper.job set expires_at = now() - interval '1 s'")
    assert claim(conn) == []
    assert ends(conn) == [discarded(job)]


def test_a_running_job_never_expires_and_one_given_back_does(conn):
    job = add(conn, timedelta(hours=1))
    claims = Claims(conn, "index", EPOCH)
    held = claims.claim([KIND], 1)
    conn.execute("update weirkeeper.job set expires_at = now() - interval '1 s'")
    conn.execute("update weirkeeper.expiry set expires_at = now() - interval '1 s'")
    assert expire(conn, "index") == 0
    assert rows(conn, "expiry") == 1
    claims.give_back(held)
    assert expire(conn, "index") == 1
    assert ends(conn) == [discarded(job)]


def test_a_retry_by_hand_overrules_it(conn):
    job = add(conn, PAST)
    assert claim(conn) == []
    conn.execute("select weirkeeper.retry_jobs(array[%s::bigint])", (job,))
    assert [c.job_id for c in claim(conn)] == [job]


def test_a_retry_by_hand_overrules_it_also_when_its_only_claims_were_rescued(conn):
    """Its log then tells of no try; the entry that the retry marked tells of the hand."""
    job = add(conn, timedelta(hours=1))
    conn.execute("update weirkeeper.job set max_attempts = 1")
    for _ in range(2):  # the second ends a loop of claims, and the job
        claim(conn)
        assert rescue(conn, {EPOCH: "dead"}) == {"dead": 1}
    conn.execute("update weirkeeper.job set expires_at = now() - interval '1 s'")
    conn.execute("update weirkeeper.expiry set expires_at = now() - interval '1 s'")
    inspector = PostgresInspector(conn)
    assert inspector.get(str(job)).state == "discarded"
    inspector.retry(str(job))
    assert [v for v in violations(conn, 60) if v.rule == "expiry_lost"] == []
    assert "expired" not in inspector.explain(str(job)).facts
    assert expire(conn, "index") == 0
    assert rows(conn, "expiry") == 0
    assert [v for v in violations(conn, 60) if v.rule == "expiry_lost"] == []
    assert [c.job_id for c in claim(conn)] == [job]


def test_a_row_that_is_locked_is_left_for_the_next_time(conn, database_url):
    job = add(conn, PAST)
    with psycopg.connect(database_url) as other:
        other.execute("select from weirkeeper.ready where job_id = %s for update", (job,))
        assert expire(conn, "index") == 0
    assert expire(conn, "index") == 1


def test_a_plain_insert_expires_as_well(conn):
    [[job]] = conn.execute(
        "insert into weirkeeper.job (kind, expires_at) values (%s, now() - interval '1 s')"
        " returning id",
        (KIND,),
    ).fetchall()
    assert claim(conn) == []
    assert ends(conn) == [discarded(job)]


def test_ten_thousand_that_expired_do_not_hold_up_one_that_did_not(conn):
    moment = datetime.now(UTC) + PAST
    PostgresJobs(conn).enqueue_many(KIND, [{}] * 10_000, EnqueueOpts(expires_at=moment))
    alive = add(conn)
    assert [c.job_id for c in claim(conn, 4)] == [alive]
    assert rows(conn, "attempt") == 10_000


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("expires_at => 'infinity'", "expires_at: expected a moment"),
        ("run_at => '294276-01-01'", "run_at and expires_at: expected a moment in the years 1 to"),
        ("run_at => '4713-01-01 BC'", "run_at and expires_at: expected a moment in the years 1 to"),
        ("expires_at => now(), run_at => now() + interval '1 s'", "a moment after run_at"),
        ("tags => array['']", "tags: expected at most 16"),
        ("tags => array[null]", "tags: expected at most 16"),
        ("tags => array[repeat('x', 65)]", "tags: expected at most 16"),
        ("tags => array[array['a'], array['b']]", "tags: expected at most 16"),
        ("tags => array_fill('a'::text, array[17])", "tags: expected at most 16"),
    ],
)
def test_sql_refuses_what_no_job_can_have(conn, options, said):
    for call in (f"enqueue('{KIND}'", f"enqueue_many('{KIND}', array['{{}}'::jsonb]"):
        with pytest.raises(psycopg.Error, match=said) as refused:
            conn.execute(f"select weirkeeper.{call}, {options})")
        assert refused.value.sqlstate == "WK004"
    names, values = zip(
        *(part.split(" => ") for part in re.split(r", (?=run_at)", options)), strict=True
    )
    with pytest.raises(psycopg.Error, match=said) as refused:
        conn.execute(
            f"insert into weirkeeper.job (kind, {', '.join(names)})"
            f" values ('{KIND}', {', '.join(values)})"
        )
    assert refused.value.sqlstate == "WK004"


@pytest.mark.parametrize(
    ("opts", "said"),
    [
        ({"tags": ["a"]}, "tags: expected a tuple"),
        ({"tags": ("",)}, "tags: expected words"),
        ({"tags": ("a\0",)}, "NUL"),
        ({"expires_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
    ],
)
def test_python_refuses_it_before(conn, opts, said):
    with pytest.raises(InvalidArguments, match=said):
        PostgresJobs(conn).enqueue(KIND, {}, EnqueueOpts(**opts))


# ── ids beyond 32 and 53 bits ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("start", [2**31 - 48, 2**53 + 1])
def test_numbers_may_grow_beyond_32_and_53_bits(conn, database_url, start):
    # Not the numbers of queues: only a declaration that is new or changed draws one, so there are
    # dozens, not billions. They are the second halves of advisory locks' names, which have 32 bits.
    for sequence in conn.execute(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace"
        " where c.relkind = 'S' and n.nspname = 'weirkeeper' and c.relname <> 'queue_no_seq'"
    ).fetchall():
        conn.execute(f"alter sequence {sequence[0]} restart with {start}")
    jobs = PostgresJobs(conn)
    ids = [jobs.enqueue(KIND, {}) for _ in range(50)]
    ids += jobs.enqueue_many(KIND, [{}] * 50)
    assert [int(job) for job in ids] == list(range(start, start + 100))
    claimed = Claims(conn, "index", start).claim([KIND], 200)
    assert [json.loads(c.line)["id"] for c in claimed] == ids
    ended = [Finish(c.job_id, c.token, "failed", "retryable", 0.0) for c in claimed]
    assert finish(conn, start, ended) == 100
    claimed = Claims(conn, "index", start).claim([KIND], 200)
    assert finish(conn, start, [Finish(c.job_id, c.token) for c in claimed]) == 100
    with connect(database_url, "test", Use.READ) as reader:
        inspector = PostgresInspector(reader)
        assert [j.id for j in inspector.list(limit=100)] == ids[::-1]
        assert inspector.get(ids[-1]).state == "completed"


def test_no_column_or_function_holds_an_id_in_32_bits(conn):
    narrow = conn.execute(
        "select table_name, column_name from information_schema.columns"
        " where table_schema = 'weirkeeper' and data_type <> 'bigint'"
        " and (column_name ~ '(^|_)(seq|epoch|token)$' or column_name in ('id', 'job_id'))"
        " and data_type <> 'uuid'"
    ).fetchall()
    assert narrow == []
    numbers = "(^|_)(seq|epoch|epochs|token|tokens|id|ids|job_ids|delivery|job)$"
    narrow = conn.execute(
        "select p.oid::regprocedure::text, a.name, a.type::regtype::text"
        " from pg_proc p, unnest(p.proargnames, coalesce(p.proallargtypes, p.proargtypes::oid[]))"
        "  as a (name, type)"
        " where p.pronamespace = 'weirkeeper'::regnamespace and a.name ~ %s"
        "  and a.type::regtype::text in ('integer', 'integer[]', 'smallint', 'smallint[]')",
        (numbers,),
    ).fetchall()
    assert narrow == []


def test_no_cast_cuts_an_id_to_32_bits(conn):
    """In our statements, and in the functions as the database has them."""
    cut = re.compile(
        r"(seq|epoch|token|\bid|job|delivery|_id|_ids)'?\)?\s*::\s*(int|integer|int4)\b"
    )
    functions = conn.execute(
        "select prosrc from pg_proc where pronamespace = 'weirkeeper'::regnamespace"
    ).fetchall()
    files = (Path(__file__).parents[2] / "shared/postgres/sql").glob("*/*.sql")
    texts = [text for (text,) in functions] + [path.read_text() for path in files]
    assert len(texts) > 200
    assert [found[0] for text in texts if (found := cut.search(text))] == []
    assert cut.search("(j.args ->> 'job_id')::integer")


# ── values ────────────────────────────────────────────────────────────────────────────────────────


def test_what_json_or_postgres_cannot_hold_is_refused_by_both(conn):
    for value in (float("nan"), float("inf"), "a\0b", "\udc00"):
        with pytest.raises(InvalidArguments):
            PostgresJobs(conn).enqueue(KIND, {"x": value})
    for text in ('{"x": NaN}', '{"x": Infinity}', r'{"x": "\u0000"}', '{"x": 1e4001}'):
        with pytest.raises(psycopg.Error):
            conn.execute("select weirkeeper.enqueue(%s, %s::jsonb)", (KIND, text))


def test_a_number_that_no_float_holds_arrives_exactly(conn):
    conn.execute("""select weirkeeper.enqueue(%s, '{"x": 1e400}')""", (KIND,))
    [claimed] = claim(conn)
    assert json.loads(claimed.line)["args"] == {"x": 10**400}


@pytest.mark.parametrize(
    "size", [1_000_000, 50_000_000, pytest.param(300_000_000, marks=pytest.mark.slow)]
)
def test_huge_args_are_refused(conn, size):
    with pytest.raises(InvalidArguments, match="at most 262144 bytes"):
        PostgresJobs(conn).enqueue(KIND, {"x": "a" * size})
    if size < 300_000_000:  # beyond, jsonb itself refuses
        with pytest.raises(psycopg.Error, match="at most 262144 bytes"):
            conn.execute(
                "select weirkeeper.enqueue(%s, jsonb_build_object('x', repeat('a', %s)))",
                (KIND, size),
            )


def test_a_list_of_jobs_of_the_greatest_size_never_reads_their_args(conn, database_url):
    jobs = PostgresJobs(conn)
    small = jobs.enqueue_many(KIND, [{}] * 100)
    big = jobs.enqueue_many("corpus.reindex", [{"x": "a" * 262_000}] * 100)
    with connect(database_url, "test", Use.READ) as reader:
        inspector = PostgresInspector(reader)
        spent = {}
        for kind, ids in ((KIND, small), ("corpus.reindex", big), (KIND, small)):
            began = time.perf_counter()
            page = inspector.list(JobFilter(kind=kind), limit=100)
            spent[kind] = time.perf_counter() - began
            assert [j.id for j in page] == ids[::-1]
            assert {j.args for j in page} == {None}
    assert spent["corpus.reindex"] < 3 * spent[KIND] + 0.05


# ── counters ──────────────────────────────────────────────────────────────────────────────────────


def test_counters_far_beyond_16_bits_go_on(conn):
    job = add(conn, max_attempts=100_000)
    conn.execute("update weirkeeper.ready set attempt = 32766, run = 32766")
    for turn in range(10):
        [claimed] = claim(conn)
        snooze = turn < 5
        outcome = ("snoozed", "retryable", 0.0, False) if snooze else ("failed", "retryable", 0.0)
        finish(conn, EPOCH, [Finish(job, claimed.token, *outcome)])
    [claimed] = claim(conn)
    assert (claimed.attempt, claimed.run) == (32771, 32777)


def test_tags_are_kept_and_shown(conn, database_url):
    job = add(conn, tags=("urgent", "漢字"))
    with connect(database_url, "test", Use.READ) as reader:
        assert list(PostgresInspector(reader).get(str(job)).tags) == ["urgent", "漢字"]
