"""The relay as a program: woken, stopped, killed, cut off, misconfigured."""

from __future__ import annotations

import json
import re
import signal
import statistics
import threading
import time
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from shared.postgres.schema.migrator import migrate
from tests.support.cluster import ThrowawayCluster, free_port
from tests.support.databases import Databases
from tests.support.waiting import until

RECORD = "select weirkeeper.record_event('corpus.note.changed', subject => %s)::text as id"
PHASE = "select phase from weirkeeper.process order by epoch desc limit 1"
# Lock A is held and lock S is not: a writer that was silent is still open.
DOZES = (
    "select array_agg(objid::integer) = '{0}' from pg_locks where locktype = 'advisory' and granted"
    " and mode = 'ExclusiveLock' and classid = 1464160587 and objid in (0, 1)"
    " and database = (select oid from pg_database where datname = current_database())"
)
FANNED = "select count(*) from weirkeeper.event_fanout"


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True, row_factory=dict_row) as opened:
        yield opened


def one(conn: psycopg.Connection[dict[str, Any]], query: str, *params: object) -> Any:
    row = conn.execute(query, params).fetchone()
    return next(iter(row.values())) if row else None


def started(programs, conn, slot="relay"):
    program = programs.start("relay", "--slot", slot)
    until(
        lambda: one(
            conn, "select 1 from weirkeeper.process where slot = %s and phase = 'ready'", slot
        ),
        20,
        f"{slot} is ready",
    )
    return program


def asleep(conn):
    """Whether some relay sleeps: locks A and S of number 0 are held."""
    return one(
        conn,
        "select count(*) = 2 from pg_locks where locktype = 'advisory' and granted"
        " and mode = 'ExclusiveLock' and classid = 1464160587 and objid in (0, 1)"
        " and database = (select oid from pg_database where datname = current_database())",
    )


def fanned(conn, event):
    return one(conn, "select 1 from weirkeeper.event_fanout where event_id = %s", event)


def pickup(conn, writer, *, wake=True):
    """Seconds from the commit of an event until its fan-out, as seen by another session."""
    with writer.transaction():
        if not wake:
            writer.execute("set local weirkeeper.wake = off")
        event = writer.execute(RECORD, ["note://1"]).fetchone()[0]
    began = time.monotonic()
    until(lambda: fanned(conn, event), 10, "the event is fanned out")
    return time.monotonic() - began


def test_a_wake_comes_well_before_the_poll(programs, conn, database_url):
    started(programs, conn)
    woken, polled = [], []
    with psycopg.connect(database_url, autocommit=True) as writer:
        for _ in range(5):
            until(lambda: asleep(conn), 10, "the relay sleeps")
            woken.append(pickup(conn, writer))
            until(lambda: asleep(conn), 10, "the relay sleeps")
            polled.append(pickup(conn, writer, wake=False))
    assert statistics.median(woken) < statistics.median(polled) / 3, (woken, polled)
    assert statistics.median(polled) < 3, "a lost wake costs one poll, never an event"


def test_a_long_writer_transaction_does_not_slow_anothers_pickup(programs, conn, database_url):
    with (
        psycopg.connect(database_url) as long,
        psycopg.connect(database_url, autocommit=True) as writer,
    ):
        event = long.execute(RECORD, ["note://long"]).fetchone()[0]  # silent: nobody sleeps yet
        started(programs, conn)
        until(lambda: one(conn, DOZES), 10, "the relay dozes")
        polled = [pickup(conn, writer, wake=False) for _ in range(7)]
        beside = [pickup(conn, writer) for _ in range(7)]
        until(lambda: one(conn, DOZES), 10, "it dozes still (it tries to sleep once a second)")
        assert not fanned(conn, event)
        long.commit()
        until(lambda: fanned(conn, event), 20, "the long writer's own event is fanned out")
    assert statistics.median(beside) < statistics.median(polled) / 2, (beside, polled)


def test_its_row_names_the_session_that_would_make_every_writer_notify(programs, conn):
    started(programs, conn)
    sleeper = (
        "select array[pid] from pg_stat_activity"
        " where application_name = %s and datname = current_database()"
    )
    until(
        lambda: (
            one(conn, "select backend_pids from weirkeeper.process")
            == one(conn, sleeper, "weirkeeper relay wakes")
        ),
        10,
        "the next beat tells it",
    )


def test_sigterm_ends_it_within_seconds_and_leaves_a_drain_row(programs, conn):
    program = started(programs, conn)
    began = time.monotonic()
    assert program.terminate() == 0
    assert time.monotonic() - began < 5 + 10  # of a slow machine
    assert one(conn, "select phase from weirkeeper.process") == "stopped"
    row = conn.execute("select * from weirkeeper.drain").fetchone()
    assert (row["role"], row["slot"], row["jobs"]) == ("relay", "relay", {})
    assert 0 <= row["phases"]["pass"] < 5


def test_sigterm_during_a_load_finishes_the_pass_and_the_next_life_does_the_rest(programs, conn):
    program = started(programs, conn)
    load = threading.Thread(target=record_all, args=(programs, 3000))
    load.start()
    until(lambda: one(conn, "select count(*) from weirkeeper.event_fanout"), 20, "it works")
    assert program.terminate() == 0
    load.join(60)
    started(programs, conn)
    settled(conn, 3000)


def test_killed_in_the_middle_of_a_load_it_loses_and_doubles_nothing(programs, conn):
    enough, recorded = threading.Event(), []
    load = threading.Thread(target=record_until, args=(programs, enough, recorded))
    load.start()
    try:
        for life in range(8):
            program = started(programs, conn, f"relay-{life}")
            enough_done = one(conn, FANNED) + 10 * life
            until(lambda n=enough_done: one(conn, FANNED) > n, 20, "it works")
            program.send(signal.SIGKILL)
            program.wait(30)
    finally:
        enough.set()
        load.join(30)
    started(programs, conn, "relay-last")
    settled(conn, sum(recorded))


def test_two_relays_share_a_load(programs, conn):
    started(programs, conn, "relay-a")
    started(programs, conn, "relay-b")
    record_all(programs, 2000)
    settled(conn, 2000)


def test_it_outlives_the_end_of_each_of_its_sessions(programs, conn, database_url):
    program = started(programs, conn)
    with psycopg.connect(database_url, autocommit=True) as writer:
        for session in ("passes", "wakes", "beat"):
            ended = one(
                conn,
                "select count(pg_terminate_backend(pid)) from pg_stat_activity"
                " where application_name = %s and datname = current_database()",
                f"weirkeeper relay {session}",
            )
            assert ended == 1, session
            assert pickup(conn, writer) < 5
    assert program.running()


def test_after_a_restart_of_postgres_it_is_woken_again_and_does_not_only_poll(programs):
    cluster = ThrowawayCluster()
    try:
        url = Databases(cluster.url).create()
        program = programs.start("relay", env={"DATABASE_URL": url})
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as conn:
            until(lambda: one(conn, PHASE) == "ready", 20, "it is ready")
        cluster.stop_fast()
        cluster.start()
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as conn:
            until(lambda: asleep(conn), 3, "it listens and sleeps again")
            with psycopg.connect(url, autocommit=True) as writer:
                woken, polled = [], []
                for _ in range(5):
                    for found, wake in ((woken, True), (polled, False)):
                        until(lambda: asleep(conn), 10, "the relay sleeps")
                        found.append(pickup(conn, writer, wake=wake))
        assert statistics.median(woken) < statistics.median(polled) / 3, (woken, polled)
        assert min(woken) < 0.2
        assert program.terminate() == 0
    finally:
        cluster.stop()


def test_it_waits_for_a_schema_and_says_so_once(programs, empty_database_url):
    program = programs.start("relay", env={"DATABASE_URL": empty_database_url})
    until(lambda: "waiting for the database" in program.text(), 10, "it waits")
    migrate(empty_database_url)
    with psycopg.connect(empty_database_url, autocommit=True, row_factory=dict_row) as conn:
        until(lambda: one(conn, PHASE) == "ready", 10, "it goes on")
    said = [record["message"] for record in program.records()]
    assert len(said) == len(set(said))
    assert program.terminate() == 0


def test_a_stop_ends_the_wait_for_a_database_that_is_away(programs):
    away = f"postgresql://nobody@127.0.0.1:{free_port()}/nothing"
    program = programs.start("relay", env={"DATABASE_URL": away})
    until(lambda: "waiting for the database" in program.text(), 10, "it waits")
    assert program.terminate(5) == 0


def test_a_slot_belongs_to_one_relay(programs, conn):
    started(programs, conn)
    second = programs.start("relay")
    assert second.wait(20) == 78
    assert "--slot: expected a slot that no live process" in second.text()


def test_a_life_that_was_declared_dead_ends_and_another_begins(programs, conn):
    program = started(programs, conn)
    first = one(conn, "update weirkeeper.process set phase = 'stopped' returning epoch")
    until(lambda: one(conn, PHASE) == "ready", 15, "a new life is ready")
    assert one(conn, "select max(epoch) from weirkeeper.process") > first
    assert program.running()


def test_it_backs_off_while_passes_fail_and_goes_on_after(programs, conn, database_url):
    program = started(programs, conn)
    conn.execute("alter table weirkeeper.event_fanout rename to elsewhere")
    event = one(conn, RECORD, "note://1")
    until(lambda: "a relay pass failed" in program.text(), 10, "the pass fails")
    conn.execute("alter table weirkeeper.elsewhere rename to event_fanout")
    until(lambda: fanned(conn, event), 10, "it is fanned out")
    assert one(conn, "select count(*) from weirkeeper.event_failure") == 0


def test_in_a_read_only_database_change_and_event_fail_together_and_passes_grow_rare(programs):
    """As a standby after a failover; the same classes of error as a disk that is full."""
    cluster = ThrowawayCluster()
    try:
        url = Databases(cluster.url).create()
        program = programs.start("relay", env={"DATABASE_URL": url})
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as conn:
            until(lambda: one(conn, PHASE) == "ready", 20, "it is ready")
            conn.execute("create table orders (id integer)")
            read_only(conn, "on")
            for statement in ("insert into orders values (1)", RECORD % "'note://1'"):
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    conn.execute(statement)
            until(lambda: len(waits(program)) >= 2, 30, "two passes failed")
            read_only(conn, "off")
            event = one(conn, RECORD, "note://1")
            assert one(conn, "select count(*) from orders") == 0
            assert one(conn, "select count(*) from weirkeeper.event") == 1
            until(lambda: fanned(conn, event), 30, "it goes on by itself")
        first, second = waits(program)[:2]
        assert second > 1.5 * first
        assert program.terminate() == 0
    finally:
        cluster.stop()


def read_only(conn, state):
    """Switch a whole server, the sessions that are open included."""
    conn.execute(f"alter system set default_transaction_read_only = {state}")
    conn.execute("select pg_reload_conf()")
    until(lambda: one(conn, "show default_transaction_read_only") == state, 5, "it is known")


def waits(program):
    """Seconds until the next pass, of each that failed."""
    found = re.findall(r"a relay pass failed, the next one is in ([\d.]+) s", program.text())
    return [float(seconds) for seconds in found]


def test_check_tells_the_routes_and_starts_nothing(programs, conn):
    program = programs.start("relay", "--check")
    assert program.wait(20) == 0
    routes = json.loads(program.text())["routes"]
    assert set(routes.pop("corpus.note.changed")) == {"corpus.index", "webhook.fanout"}
    assert {tuple(routes.pop(f"webhook.endpoint.{name}")) for name in ("failing", "disabled")} == {
        ("webhook.notice",)  # what an endpoint does is told by mail, not sent to another
    }
    assert {tuple(names) for names in routes.values()} == {("webhook.fanout",)}
    assert one(conn, "select count(*) from weirkeeper.process") == 0


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        ((), {"WEIRKEEPER_APP": "nowhere.at.all:app"}, "WEIRKEEPER_APP: expected"),
        ((), {"DATABASE_URL": "mysql://x"}, "DATABASE_URL: expected"),
        ((), {"DATABASE_URL": ""}, "no server runs here: expected one in "),
        (("--slot", "No Slot"), {}, "--slot: expected"),
    ],
)
def test_a_configuration_that_cannot_work_is_one_line_and_exit_78(programs, arguments, env, said):
    program = programs.start("relay", *arguments, env=env)
    assert program.wait(20) == 78
    (line,) = program.text().splitlines()
    assert line.startswith(f"weirkeeper relay: {said}")


def record_all(programs, total, each=20):
    """Record events in transactions of a few, as an application would."""
    with psycopg.connect(programs.environment["DATABASE_URL"], autocommit=True) as writer:
        for _ in range(total // each):
            writer.execute(
                "insert into weirkeeper.event (type, subject)"
                " select 'corpus.note.changed', 'note://' || i from generate_series(1, %s) i",
                [each],
            )


def record_until(programs, enough, recorded):
    """Record in small transactions until told that it is enough; tell how many each held."""
    with psycopg.connect(programs.environment["DATABASE_URL"], autocommit=True) as writer:
        while not enough.is_set():
            writer.execute(
                "insert into weirkeeper.event (type, subject)"
                " select 'corpus.note.changed', 'note://' || i from generate_series(1, 5) i"
            )
            recorded.append(5)


def settled(conn, total):
    """All fanned out; each event has exactly one job, which it may share when merged."""
    until(
        lambda: (
            not one(conn, "select count(*) from weirkeeper.event_pending")
            and one(conn, "select count(*) from weirkeeper.event_fanout") == total
        ),
        30,
        "everything is fanned out",
    )
    wrong = one(
        conn,
        """
        select count(*) from weirkeeper.event e
        left join weirkeeper.event_fanout f on f.event_id = e.id
        left join weirkeeper.job j
          on j.id = (f.jobs->>'corpus.index')::bigint and j.args->>'subject' = e.subject
        left join weirkeeper.ready r on r.job_id = j.id
        where r.job_id is null
        """,
    )
    assert wrong == 0
    assert one(conn, "select count(*) from weirkeeper.event_failure") == 0
    named = "select count(distinct jobs->>'corpus.index') from weirkeeper.event_fanout"
    assert one(conn, named) == one(conn, "select count(*) from weirkeeper.job")
