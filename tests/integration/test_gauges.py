"""Gauges read from Postgres: right, bounded, and by index on a big table."""

from __future__ import annotations

import json
import time

import pytest

from shared.postgres.driver.statements import statement
from shared.postgres.inspection.gauges import areas, open_gauges
from shared.postgres.queues.retention import prune_jobs
from shared.stats import CAP, CAP_ENDED
from tests.support.rows import enqueue, finish, record, session
from tests.support.waiting import until

KNOWN = ["corpus.index"]


@pytest.fixture
def conn(database_url):
    with session(database_url) as made:
        yield made


@pytest.fixture
def read(database_url):
    with open_gauges(database_url, "test") as reader:

        def values(area: str) -> dict[tuple[str, ...], float]:
            return {(r.name, *r.labels): r.value for r in areas(KNOWN)[area](reader)}

        yield values


def test_waiting_and_running_jobs_by_queue(read, conn):
    ids = [enqueue(conn) for _ in range(5)]
    conn.execute("update weirkeeper.ready set attempt = 1 where job_id = %s", [ids[0]])
    conn.execute("update weirkeeper.ready set ready_at = now() - interval '90 s' where attempt = 1")
    conn.execute("select weirkeeper.enqueue('corpus.index', run_at => now() + interval '1 h')")
    conn.execute("delete from weirkeeper.ready where job_id = %s", [ids[1]])
    conn.execute(
        "insert into weirkeeper.running"
        " (job_id, run, attempt, queue, kind, priority, epoch, token, started_at)"
        " values (%s, 1, 0, 'index', 'corpus.index', 2, 1, 1, now() - interval '7 s')",
        [ids[1]],
    )
    found = read("queues")
    assert found["jobs", "index", "pending"] == 4
    assert found["jobs", "index", "retryable"] == 1
    assert found["jobs", "index", "running"] == 1
    assert found["queue_ready_jobs", "index"] == 4
    assert 90 <= found["queue_oldest_ready_age_seconds", "index"] < 120
    assert 7 <= found["queue_oldest_running_age_seconds", "index"] < 30
    assert found["jobs", "webhook", "pending"] == 0
    assert found["queue_oldest_ready_age_seconds", "webhook"] == 0


def test_claims_tell_how_much_of_the_index_they_read_on_average(conn, database_url):
    for _ in range(20):
        enqueue(conn)
    with open_gauges(database_url, "test") as reader:
        look = areas(KNOWN)["claims"]
        assert look(reader) == []  # since when is not known yet

        def counted() -> list[float]:
            conn.execute("set enable_seqscan = off")
            conn.execute("set enable_bitmapscan = off")
            conn.execute("select count(*) from weirkeeper.ready where queue = 'index'")
            conn.execute("select pg_stat_force_next_flush()")
            return [r.value for r in look(reader)]

        assert until(counted, 10, "the server counted the look") == [20.0]
        assert look(reader) == []  # nothing was looked for meanwhile


def test_ended_jobs_are_counted_unless_tried_again(read, conn):
    ids = [enqueue(conn) for _ in range(4)]
    for job_id, state in zip(
        ids, ("discarded", "discarded", "cancelled", "completed"), strict=True
    ):
        finish(conn, job_id, state)
    conn.execute(
        "insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run)"
        " values ('index', 'corpus.index', 2, %s, 1, 1)",
        [ids[0]],
    )
    assert read("ended") == {
        ("jobs", "index", "discarded"): 1,
        ("jobs", "index", "cancelled"): 1,
    }


def test_the_outbox(read, conn):
    assert set(read("outbox").values()) == {0}
    event_id = record(conn)
    conn.execute("update weirkeeper.event set occurred_at = now() - interval '40 s'")
    conn.execute(
        "insert into weirkeeper.event_failure (event_id, poisoned_at) values (%s, now())",
        [event_id],
    )
    found = read("outbox")
    assert found["outbox_pending_events",] == 1
    assert 40 <= found["outbox_oldest_pending_age_seconds",] < 60
    assert found["outbox_poisoned_events",] == 1


def test_leases(read, conn):
    assert set(read("leases").values()) == {0}
    epochs = [
        conn.execute(
            "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
            " pid_started, version, phase, connections, beat_at)"
            " values ('queue', 'index', 'h', 'b', 1, 1, 1, '0', %s, 3, now() - %s * interval '1 s')"
            " returning epoch",
            life,
        ).fetchone()[0]
        for life in (("ready", 0), ("ready", 16), ("stopped", 0))
    ]
    for epoch in (*epochs, 10**9):
        job = enqueue(conn)
        conn.execute(
            "with gone as (delete from weirkeeper.ready where job_id = %(job)s)"
            " insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
            " values (%(job)s, 1, 0, 'index', 'corpus.index', 2, %(epoch)s, 1)",
            {"job": job, "epoch": epoch},
        )
    found = read("leases")
    assert (found["leases_held", "job"], found["leases_expired", "job"]) == (4, 3)


def test_endpoints(read, conn):
    def endpoint(sets: str = "enabled = true") -> int:
        made = conn.execute(
            "insert into weirkeeper.endpoint (owner_id, url, event_types)"
            " values ('me', 'https://example.org/', '{*}') returning id"
        ).fetchone()[0]
        conn.execute(f"update weirkeeper.endpoint set {sets} where id = {made}")
        return made

    failing = "failing_since = now() - interval '90 s', failures = 2"
    disabled = "enabled = false, disabled_at = now(), disabled_reason = 'failing'"
    held, late = (
        endpoint(f"busy_until = now() + interval '{s} s', lease_token = 1") for s in (20, -1)
    )
    endpoint(failing)
    endpoint(f"{disabled}, failing_since = now() - interval '900 s', failures = 20")
    assert {k[-1]: v for k, v in read("webhooks").items() if k[0] == "webhook_endpoints"} == {
        "active": 2, "failing": 1, "disabled": 1,
    }  # fmt: skip
    assert 90 <= read("webhooks")["webhook_longest_failing_seconds",] < 150
    for n, on in enumerate((held, held, late)):
        job = conn.execute(
            "select weirkeeper.enqueue('webhook.deliver', jsonb_build_object('delivery_id', (%s)::text))",
            [delivery(conn, on, n)],
        ).fetchone()[0]
        conn.execute(
            "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token)"
            " values (%s, 1, 0, 'webhook', 'webhook.deliver', 2, 1, 1)",
            [job],
        )
    assert read("leases")["leases_held", "endpoint"] == 1


def delivery(conn, endpoint, n):
    return conn.execute(
        "insert into weirkeeper.delivery"
        " (endpoint_id, event_id, event_seq, event_type, owner_id, body, trigger)"
        " values (%s, gen_random_uuid(), %s, 'x', 'me', '', 'auto') returning id",
        [endpoint, n],
    ).fetchone()[0]


def test_processes_by_their_newest_life(read, conn):
    def life(slot: str, phase: str, age: int) -> None:
        conn.execute(
            "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
            " pid_started, version, phase, connections, beat_at)"
            " values ('queue', %s, 'h', 'b', 1, 1, 1, '0', %s, 3, now() - %s * interval '1 s')",
            [slot, phase, age],
        )

    life("index", "ready", 50)
    life("index", "ready", 1)
    life("notify", "ready", 16)
    life("fetch", "stopped", 500)
    life("old", "ready", 100_000)
    life("Bad Name", "draining", 0)
    found = read("processes")
    assert {k[1:]: v for k, v in found.items() if k[0] == "processes"} == {
        ("queue", "ready"): 1,
        ("queue", "lost"): 1,
        ("queue", "stopped"): 1,
        ("queue", "draining"): 1,
    }
    ages = {k[1]: v for k, v in found.items() if k[0] == "process_beat_age_seconds"}
    assert sorted(ages) == ["index", "notify", "other"]
    assert 1 <= ages["index"] < 10


def test_the_server(read, conn, database_url):
    found = read("server")
    assert found["db_connection_budget",] > 10
    assert 0 <= found["notify_queue_usage",] < 1
    assert found["db_connections", "application", "idle"] >= 1
    assert found["db_connections", "weirkeeper", "active"] >= 1
    with session(database_url) as other, other.transaction():
        other.execute("select pg_current_xact_id()")
        began = other.execute("select now()").fetchone()[0]
        while conn.execute("select clock_timestamp() - %s < '50 ms'", [began]).fetchone()[0]:
            pass
        assert read("server")["db_oldest_transaction_seconds",] >= 0.05


def test_what_all_living_processes_may_open_together(read, conn):
    for slot, phase, age, connections in (
        ("index", "ready", 1, 7),
        ("index", "draining", 3, 7),  # of an older generation: both count
        ("relay", "starting", 0, 3),
        ("fetch", "stopped", 0, 100),
        ("notify", "ready", 60, 100),
    ):
        conn.execute(
            "insert into weirkeeper.process (role, slot, host, boot_id, pid_namespace, pid,"
            " pid_started, version, phase, connections, beat_at)"
            " values ('queue', %s, 'h', 'b', 1, 1, 1, '0', %s, %s, now() - %s * interval '1 s')",
            [slot, phase, connections, age],
        )
    assert read("server")["db_connections_needed",] == 17


def test_the_last_success_of_a_periodic_job_outlives_the_job(read, conn):
    conn.execute(
        "insert into weirkeeper.periodic (name, kind, every, timeout_ms) values"
        " ('daily', 'corpus.index', '1 day', 1), ('never', 'corpus.index', '1 day', 1)"
    )
    # The jobs of the last five ticks are kept whatever their age: these are more.
    states = ("completed", "completed", *["discarded"] * 6)
    for number, state in enumerate(states):
        job_id = enqueue(conn)
        conn.execute(
            "insert into weirkeeper.periodic_tick (name, tick_at, job_id)"
            " values ('daily', now() - make_interval(days => 9 - %s), %s)",
            [number, job_id],
        )
        finish(conn, job_id, state)
        conn.execute(
            "update weirkeeper.attempt set finished_at = now() - make_interval(days => 9 - %s)"
            " where job_id = %s",
            [number, job_id],
        )
    now = conn.execute("select extract(epoch from now())::float8").fetchone()[0]

    def last():
        found = read("periodic")
        assert [key[1] for key in found] == ["daily"]
        return found["periodic_last_success_timestamp_seconds", "daily"]

    before = last()
    assert abs(before - (now - 8 * 86_400)) < 60
    conn.execute("update weirkeeper.job set created_at = created_at - interval '9 days'")
    assert prune_jobs(conn, 3600, 3600, lambda: False).rows == 3  # both that completed, too
    assert last() == before
    later = enqueue(conn)
    conn.execute(
        "insert into weirkeeper.periodic_tick (name, tick_at, job_id) values ('daily', now(), %s)",
        [later],
    )
    finish(conn, later, "completed")
    assert last() > now - 60


def test_the_last_drain_of_each_slot(read, conn):
    for epoch, slot, phases in (
        (1, "index", {"jobs": 9.0}),
        (2, "index", {"jobs": 1.5, "flush": 0.25, "Bad Phase": 1.0, "text": "x"}),
        (3, "relay", {"pass": 0.5}),
    ):
        conn.execute(
            "insert into weirkeeper.drain (epoch, role, slot, started_at, phases, jobs)"
            " values (%s, 'queue', %s, now(), %s, '{}')",
            [epoch, slot, json.dumps(phases)],
        )
    found = read("drains")
    assert {k[1:]: v for k, v in found.items() if k[0] == "drain_last_phase_seconds"} == {
        ("index", "jobs"): 1.5,
        ("index", "flush"): 0.25,
        ("relay", "pass"): 0.5,
    }
    now = conn.execute("select extract(epoch from now())::float8").fetchone()[0]
    assert abs(found["drain_last_timestamp_seconds", "relay"] - now) < 30


def test_jobs_of_unknown_kinds(read, conn):
    enqueue(conn)
    assert read("kinds") == {("jobs_of_unknown_kinds",): 0}
    conn.execute(
        "insert into weirkeeper.ready (queue, kind, priority, job_id)"
        " select 'index', 'gone.' || (n % 3), 2, 1000 + n from generate_series(1, 7) n"
    )
    assert read("kinds") == {("jobs_of_unknown_kinds",): 7}


@pytest.fixture
def big(conn):
    """120,000 waiting jobs, 60,000 scheduled, 200,000 in the log, 50,000 events."""
    conn.execute(
        "insert into weirkeeper.job (kind, queue, max_attempts, timeout_ms, awaited)"
        " select 'corpus.index', 'index', 3, 1000, false from generate_series(1, 200000)"
    )
    conn.execute(
        "insert into weirkeeper.ready (queue, kind, priority, job_id)"
        " select 'index', 'corpus.index', 2, id from weirkeeper.job where id <= 120000"
    )
    conn.execute(
        "insert into weirkeeper.scheduled (job_id, run_at, queue, kind, priority, attempt, run, why)"
        " select id, now() + interval '1 h', 'index', 'corpus.index', 2, 1, 1, 'retry'"
        " from weirkeeper.job where id > 120000 and id <= 180000"
    )
    conn.execute(
        "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " select id, 1, 1, s, s from (select id, case when id > 180000 then 'discarded'"
        " else 'completed' end as s from weirkeeper.job) j"
    )
    conn.execute(
        "insert into weirkeeper.event_pending (event_id)"
        " select gen_random_uuid() from generate_series(1, 50000)"
    )
    conn.execute("vacuum analyze")


BIG = tuple(
    f"Seq Scan on {table}"
    for table in ("job", "attempt", "ready", "scheduled", "delivery", "endpoint")
)


def test_counts_stop_and_nothing_big_is_read_whole(big, read, database_url):
    assert read("queues")["queue_ready_jobs", "index"] == CAP
    assert read("queues")["jobs", "index", "retryable"] == CAP
    assert read("ended")["jobs", "index", "discarded"] <= CAP_ENDED
    assert read("outbox")["outbox_pending_events",] == CAP
    assert read("kinds")["jobs_of_unknown_kinds",] == 0
    took = []
    for _ in range(3):  # the quickest counts: other tests share the machine
        begun = time.monotonic()
        for area in areas(KNOWN):
            read(area)
        took.append(time.monotonic() - begun)
    assert min(took) < 2, "one round costs less than a statement may"
    with open_gauges(database_url, "test") as conn:
        params = {"cap": CAP, "known": KNOWN, "lease": 15.0}
        for name in ("queues", "ended", "outbox", "strangers", "leases", "endpoints"):
            rows = conn.execute("explain " + statement(f"gauges/{name}"), params).fetchall()
            plan = "\n".join(line for (line,) in rows)
            assert not any(scan in plan for scan in BIG), plan
