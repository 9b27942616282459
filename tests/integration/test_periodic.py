"""Periodic jobs in the database: each tick starts once, whoever looks, whatever the clock did."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest

from shared.app import App, load_app
from shared.errors import NotFound
from shared.jobs.kinds import Kind
from shared.jobs.periodic import Periodic
from shared.jobs.work import Finish
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues import completions, periodic
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.promotions import promote
from tests.support.waiting import until

KIND = Kind("p.work", "maintenance", "m:f")
EVERY = Periodic("p.every", "p.work", {"a": 1}, every=60)
CRON = Periodic("p.cron", "p.work", cron="30 4 * * *", timezone="Europe/Berlin")


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with connect(database_url, "test", Use.HOT) as opened:
        yield opened


def tell(conn: Connection, *periodics: Periodic, replace: bool = False) -> None:
    app = App(kinds=(KIND,), periodics=periodics).merged(load_app(None)).check()
    declare(conn, app, replace=replace)


def look(conn: Connection) -> float | None:
    return periodic.tick(conn, ["p.work"])


def jobs(conn: Connection) -> list[int]:
    rows = conn.execute("select id from weirkeeper.job where kind = 'p.work' order by id")
    return [row[0] for row in rows]


def move(conn: Connection, name: str, seconds: float) -> datetime:
    """Time passes: everything that is known of a periodic lies so much further back."""
    conn.execute(
        "update weirkeeper.periodic_tick set tick_at = tick_at - make_interval(secs => %s)"
        " where name = %s",
        (seconds, name),
    )
    row = conn.execute(
        "update weirkeeper.periodic set next_at = next_at - make_interval(secs => %s)"
        " where name = %s returning next_at",
        (seconds, name),
    ).fetchone()
    return row[0]


def next_at(conn: Connection, name: str) -> datetime:
    return conn.execute(
        "select next_at from weirkeeper.periodic where name = %s", (name,)
    ).fetchone()[0]


def ticks(conn: Connection, name: str) -> list[datetime]:
    return [
        row[0]
        for row in conn.execute(
            "select tick_at from weirkeeper.periodic_tick where name = %s order by 1", (name,)
        )
    ]


def take_all(conn: Connection) -> None:
    """Whatever is in line is run and completed."""
    conn.execute(
        "with gone as (delete from weirkeeper.ready returning job_id, run)"
        " insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
        " select job_id, run + 1, 1, 'completed', 'completed' from gone"
    )


def test_an_interval_runs_at_the_first_start_ever_and_never_again_for_a_start(conn):
    tell(conn, EVERY)
    assert look(conn) == pytest.approx(60, abs=1)
    assert len(jobs(conn)) == 1
    for _ in range(3):
        tell(conn, EVERY)
        assert 58 < look(conn) <= 60
    assert len(jobs(conn)) == 1


def test_a_job_of_a_tick_is_tried_once_and_bounded(conn):
    tell(
        conn,
        EVERY,
        replace(EVERY, name="p.long", every=86_400),
        replace(EVERY, name="p.minutely", every=None, cron="* * * * *", at_first_start=True),
    )
    look(conn)
    rows = conn.execute(
        "select t.name, j.max_attempts, j.timeout_ms, j.args from weirkeeper.job j"
        " join weirkeeper.periodic_tick t on t.job_id = j.id where j.kind = 'p.work' order by 1"
    ).fetchall()
    assert rows == [
        ("p.every", 1, 60_000, {"a": 1}),
        ("p.long", 1, 600_000, {"a": 1}),
        ("p.minutely", 1, 60_000, {"a": 1}),
    ]


def test_a_cron_waits_for_its_first_moment(conn):
    tell(conn, CRON)
    assert 0 < look(conn) <= 25 * 3600
    assert jobs(conn) == []
    due = next_at(conn, "p.cron")
    assert due == CRON.schedule.next_after(datetime.now(UTC))


def test_missed_ticks_are_one_start_and_the_next_is_on_the_grid(conn):
    tell(conn, EVERY)
    look(conn)
    take_all(conn)
    missed = move(conn, "p.every", 60 * 3.5)
    assert look(conn) == pytest.approx(30, abs=1)
    assert len(jobs(conn)) == 2
    assert ticks(conn, "p.every")[-1] == missed
    assert (next_at(conn, "p.every") - missed).total_seconds() == 180


def test_skip_leaves_what_was_missed_and_takes_what_is_on_time(conn):
    tell(conn, replace(EVERY, missed="skip"))
    look(conn)
    take_all(conn)
    move(conn, "p.every", 60 * 3.5)
    look(conn)
    assert len(jobs(conn)) == 1
    move(conn, "p.every", 31)
    look(conn)
    assert len(jobs(conn)) == 2


def test_skip_does_not_take_the_first_start_for_a_missed_tick(conn):
    """Declared by a migration, and the first process comes much later."""
    tell(conn, replace(EVERY, missed="skip"), replace(CRON, missed="skip", timezone="UTC"))
    look(conn)  # works out the first moment of the cron
    conn.execute("delete from weirkeeper.periodic_tick")
    conn.execute("delete from weirkeeper.ready")
    conn.execute("update weirkeeper.periodic set last_started_at = null")
    move(conn, "p.every", 3600)
    conn.execute(
        "update weirkeeper.periodic set next_at = next_at - interval '24 hours'"
        " where name = 'p.cron'"
    )
    before = len(jobs(conn))
    look(conn)
    assert len(ticks(conn, "p.every")) == 1
    assert ticks(conn, "p.cron") == []
    assert len(jobs(conn)) == before + 1


def test_a_tick_whose_predecessor_still_waits_adds_no_job(conn):
    tell(conn, EVERY)
    look(conn)
    for _ in range(5):
        move(conn, "p.every", 60)
        look(conn)
    assert len(jobs(conn)) == 1
    take_all(conn)
    move(conn, "p.every", 60)
    look(conn)
    assert len(jobs(conn)) == 2


def test_a_tick_whose_predecessor_was_put_off_adds_no_job(conn):
    """Else a minute's periodic that finds its dependency away for hours comes back as hundreds."""
    tell(conn, EVERY)
    look(conn)
    [claim] = Claims(conn, "maintenance", 1).claim(["p.work"], 1)
    put_off = Finish(claim.job_id, claim.token, "snoozed", "pending", delay=3600.0, spent=False)
    completions.finish(conn, 1, [put_off])
    for _ in range(5):
        move(conn, "p.every", 60)
        look(conn)
    assert jobs(conn) == [claim.job_id]
    conn.execute("update weirkeeper.scheduled set run_at = now() where job_id = %s", jobs(conn))
    assert promote(conn, "maintenance")[0] == 1
    take_all(conn)
    move(conn, "p.every", 60)
    look(conn)
    assert len(jobs(conn)) == 2


def test_of_many_that_look_at_once_one_starts_the_tick(conn, database_url):
    periodics = [replace(EVERY, name=f"p.every{n}") for n in range(40)]
    tell(conn, *periodics)
    gate, failures = threading.Barrier(6), []

    def process() -> None:
        try:
            with connect(database_url, "test", Use.HOT) as own:
                gate.wait()
                look(own)
        except Exception as error:  # noqa: BLE001  (told by the test)
            failures.append(error)

    for _ in range(3):
        before = len(jobs(conn))
        threads = [threading.Thread(target=process) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(jobs(conn)) == before + 40
        take_all(conn)
        conn.execute("delete from weirkeeper.periodic_tick")  # one may be the same moment again
        for declared in periodics:
            move(conn, declared.name, 60)


def test_who_saw_the_tick_before_a_pause_finds_it_gone(conn):
    tell(conn, EVERY)
    seen = next_at(conn, "p.every")
    conn.execute("update weirkeeper.periodic set next_at = next_at - interval '130 s'")
    look(conn)
    take_all(conn)
    known, following = jobs(conn), next_at(conn, "p.every")
    fire = "select weirkeeper.fire_periodic('p.every', %s, %s, false)"
    late = (seen, seen + timedelta(seconds=60))
    assert conn.execute(fire, late).fetchone() == (None,)
    assert (jobs(conn), next_at(conn, "p.every")) == (known, following)


def test_a_tick_that_is_not_due_by_the_database_is_not_fired(conn):
    tell(conn, EVERY)
    look(conn)
    take_all(conn)
    ahead = next_at(conn, "p.every")
    fire = "select weirkeeper.fire_periodic('p.every', %s, %s, false)"
    assert conn.execute(fire, (ahead, ahead + timedelta(seconds=60))).fetchone() == (None,)
    assert next_at(conn, "p.every") == ahead


def test_the_clock_goes_back_and_no_tick_doubles_or_waits_for_ever(conn):
    """As a clock that was years ahead would have left it; the ticks of today were started."""
    tell(conn, replace(EVERY, every=3600), CRON)
    look(conn)
    take_all(conn)
    today = next_at(conn, "p.cron")
    conn.execute("update weirkeeper.periodic set next_at = next_at + interval '4 years'")
    conn.execute(
        "insert into weirkeeper.periodic_tick (name, tick_at, job_id) values ('p.cron', %s, 1)",
        (today,),
    )
    assert look(conn) <= 3600
    assert next_at(conn, "p.cron") == today
    assert len(jobs(conn)) == 1
    conn.execute(  # and then that moment comes a second time
        "update weirkeeper.periodic set next_at = %s where name = 'p.cron'",
        (today - timedelta(days=1),),
    )
    conn.execute(
        "update weirkeeper.periodic_tick set tick_at = %s where name = 'p.cron'",
        (today - timedelta(days=1),),
    )
    look(conn)
    assert len(jobs(conn)) == 1
    assert next_at(conn, "p.cron") == today


def test_a_changed_declaration_holds_from_now_on(conn):
    tell(conn, replace(EVERY, every=86_400), CRON)
    look(conn)
    tell(conn, EVERY, replace(CRON, cron="0 5 * * *"))
    assert look(conn) <= 60
    local = next_at(conn, "p.cron").astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.hour, local.minute) == (5, 0)
    assert len(jobs(conn)) == 1


def test_a_periodic_that_is_gone_is_retired_by_a_migration_alone(conn):
    tell(conn, EVERY, CRON)
    look(conn)
    tell(conn, CRON)
    assert {s.name for s in status(conn)} >= {"p.every", "p.cron"}
    tell(conn, CRON, replace=True)
    assert "p.every" not in {s.name for s in status(conn)}


def test_a_tick_that_fires_while_its_periodic_is_retired_goes_with_it(conn, database_url):
    tell(conn, EVERY, CRON)
    eye = psycopg.connect(database_url, autocommit=True)
    with psycopg.connect(database_url) as old, eye, ThreadPoolExecutor(1) as thread:
        old.execute(
            "select weirkeeper.fire_periodic(name, next_at, next_at + interval '1 h', false)"
            " from weirkeeper.periodic where name = 'p.every'"
        )
        retiring = thread.submit(tell, conn, CRON, replace=True)
        waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = %s"
        backend = [conn.info.backend_pid]
        until(lambda: eye.execute(waits, backend).fetchone()[0] or retiring.done(), 10, "it waits")
        old.commit()
        retiring.result(10)
    assert "p.every" not in {s.name for s in status(conn)}


def test_kinds_that_a_process_does_not_know_are_left_to_others(conn):
    tell(conn, EVERY)
    assert periodic.tick(conn, ["p.other"]) is None
    assert jobs(conn) == []


def test_one_that_cannot_be_started_leaves_the_others(conn, caplog):
    tell(conn, replace(EVERY, name="p.bad"), replace(EVERY, name="p.zone"), EVERY)
    deep = "[" * 70 + "]" * 70
    conn.execute(
        "update weirkeeper.periodic set args = jsonb_build_object('a', %s::jsonb)"
        " where name = 'p.bad'",
        (deep,),
    )
    conn.execute(
        "update weirkeeper.periodic set every = null, cron = '* * * * *', timezone = 'Mars/Base'"
        " where name = 'p.zone'"
    )
    assert look(conn) == pytest.approx(60, abs=1)
    assert len(jobs(conn)) == 1
    assert len(ticks(conn, "p.every")) == 1
    told = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert any("p.bad is not started here: args of kind p.work" in line for line in told)
    assert any("p.zone is not started here: cron: expected" in line for line in told)


def status(conn: Connection) -> list:
    return periodic.periodic_status(conn, PostgresInspector(conn)._described)


def one(conn: Connection, name: str = "p.every"):
    [found] = [s for s in status(conn) if s.name == name]
    return found


def test_run_now_adds_a_run_and_leaves_the_schedule(conn):
    tell(conn, EVERY)
    look(conn)
    before = next_at(conn, "p.every")
    job = periodic.run_periodic(conn, "p.every")
    assert [str(n) for n in jobs(conn)][-1] == job
    assert next_at(conn, "p.every") == before
    with pytest.raises(NotFound, match=r"expected the name of one that is declared; got 'p\.no'"):
        periodic.run_periodic(conn, "p.no")


def test_the_record_shows_the_last_five_starts_their_result_and_error(conn):
    tell(conn, EVERY)
    assert one(conn).next_at is not None
    assert (one(conn).last_started_at, one(conn).last_result, one(conn).starts) == (None, None, ())
    look(conn)
    for _ in range(6):
        take_all(conn)
        periodic.run_periodic(conn, "p.every")
    conn.execute(
        "with gone as (delete from weirkeeper.ready where kind = 'p.work' returning job_id)"
        " insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error)"
        " select job_id, 1, 1, 'failed', 'discarded', 'no' from gone"
    )
    found = one(conn)
    assert found.schedule == "every 60 s"
    assert [job.id for job in found.starts] == [str(n) for n in reversed(jobs(conn)[-5:])]
    assert [job.state for job in found.starts] == ["discarded"] + ["completed"] * 4
    assert (found.last_result, found.last_error) == ("discarded", "no")
    assert found.last_started_at is not None


def test_a_start_commits_to_the_disk_whatever_the_session_says(conn):
    assert conn.execute("show synchronous_commit").fetchone() == ("off",)
    tell(conn, EVERY)
    with conn.transaction():
        look(conn)
        assert conn.execute("show synchronous_commit").fetchone() == ("on",)
    assert conn.execute("show synchronous_commit").fetchone() == ("off",)
