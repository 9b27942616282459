"""Migrations: from nothing, again, at once, edited, behind a lock; and what programs accept."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from shared.app import load_app
from shared.errors import ConfigurationError, SchemaTooNew, SchemaTooOld
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import connect
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.processes.registry import Registration, beat, processes, register, stopped
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from shared.postgres.schema import migrator
from shared.postgres.schema.accepted import check_schema
from shared.postgres.schema.migrator import Migration, migrate, migrations
from shared.services.process import identity
from tests.sql.schema_text import schema_text
from tests.support.waiting import until

NEWER = migrations()[-1].version + 1
WAITS = """
    select count(*) from pg_locks l join pg_stat_activity a using (pid)
    where a.datname = current_database() and a.application_name = 'weirkeeper migrate'
      and not l.granted and l.relation = 'weirkeeper.job'::regclass"""


@pytest.fixture
def conn(database_url) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


@pytest.fixture
def one_more(monkeypatch) -> Migration:
    """A migration that needs a table to itself, after those of this build."""
    text = "-- breaking: no\nalter table weirkeeper.job add column planted integer"
    extra = Migration(NEWER, "planted", text, breaking=False)
    every = (*migrations(), extra)
    monkeypatch.setattr(migrator, "migrations", lambda: every)
    return extra


def test_from_nothing_and_again(empty_database_url):
    told: list[str] = []
    assert migrate(empty_database_url, told.append) == len(migrations()) == len(told)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        first = schema_text(conn)
        assert migrate(empty_database_url, told.append) == 0
        assert schema_text(conn) == first
    assert len(told) == len(migrations())


def test_two_migrators_at_once(empty_database_url):
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(migrate, [empty_database_url] * 4))
    assert sorted(done) == [0, 0, 0, len(migrations())]


def test_an_edited_migration_is_refused(conn, database_url):
    conn.execute("update weirkeeper.migration set checksum = 'edited' where version = 1")
    with pytest.raises(ConfigurationError, match=r"migration 0001: expected the text that was"):
        migrate(database_url)


def test_a_failing_migration_leaves_nothing(conn, database_url, monkeypatch):
    text = "create table weirkeeper.planted (id bigint); select 1 / 0"
    every = (*migrations(), Migration(NEWER, "planted", text, breaking=False))
    monkeypatch.setattr(migrator, "migrations", lambda: every)
    before = schema_text(conn)
    with pytest.raises(Exception, match="division by zero"):
        migrate(database_url)
    assert schema_text(conn) == before


def test_behind_a_lock_it_tries_again_and_holds_up_nobody_for_long(
    conn, database_url, one_more: Migration
):
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(database_url) as holder,
        psycopg.connect(database_url, autocommit=True) as reader,
    ):
        holder.execute("select from weirkeeper.job limit 1")  # and the transaction stays open

        def waits() -> bool:
            return conn.execute(WAITS).fetchone() == (1,)

        running = pool.submit(migrate, database_url)
        until(waits, 10, "the migration waits for the table")
        began = time.monotonic()
        reader.execute("select from weirkeeper.job limit 1")  # queues behind the migration
        held_up = time.monotonic() - began
        until(waits, 10, "the migration tries again")
        assert not running.done()
        assert held_up < 10, "lock_timeout is half a second; its holder is still there"
        holder.rollback()
        assert running.result(20) == 1
    row = conn.execute("select version, name from weirkeeper.migration order by 1 desc").fetchone()
    assert row == (one_more.version, one_more.name)


def test_while_a_dump_holds_a_table_a_migration_of_it_never_stops_the_work(
    conn, database_url, one_more: Migration
):
    """A dump holds ACCESS SHARE for long; a new generation arrives under load."""
    with (
        ThreadPoolExecutor(1) as pool,
        psycopg.connect(database_url) as dump,
        connect(database_url, "work") as work,
    ):
        dump.execute("lock table weirkeeper.job, weirkeeper.ready in access share mode")
        running = pool.submit(migrate, database_url)
        until(lambda: conn.execute(WAITS).fetchone() == (1,), 10, "the migration waits")
        enqueued, claimed = list[float](), list[float]()
        claims = Claims(work, "index", 1)
        until_when = time.monotonic() + 4
        while time.monotonic() < until_when:
            began = time.monotonic()
            work.execute("select weirkeeper.enqueue('corpus.reindex', '{}')")
            between = time.monotonic()
            assert len(claims.claim(["corpus.reindex"], 10)) == 1
            enqueued.append(between - began)
            claimed.append(time.monotonic() - between)
        behind = [seconds for seconds in enqueued + claimed if seconds > 0.2]
        assert len(behind) >= 2, "it tried, more than once"
        assert statistics.median(behind) < 1.0, "half a second at most, and the machine's own wait"
        assert len(claimed) > 20
        dump.rollback()
        assert running.result(30) == 1


def test_an_empty_database_is_too_old(empty_database_url):
    with connect(empty_database_url, "test") as conn, pytest.raises(SchemaTooOld) as caught:
        check_schema(conn)
    assert caught.value.transient  # a program stays and looks again


def test_a_database_one_behind_is_too_old(conn):
    conn.execute("delete from weirkeeper.migration where version = %s", [migrations()[-1].version])
    with pytest.raises(SchemaTooOld, match="run `script/weirkeeper migrate`"):
        check_schema(conn)


@pytest.mark.parametrize("breaking", [True, False])
def test_a_newer_schema_is_accepted_unless_it_breaks(conn, breaking):
    conn.execute(
        "insert into weirkeeper.migration (version, name, checksum, breaking)"
        " values (%s, 'later', 'x', %s)",
        [NEWER, breaking],
    )
    if breaking:
        with pytest.raises(SchemaTooNew, match=r"which is breaking; upgrade this program"):
            check_schema(conn)
    else:
        assert check_schema(conn) == NEWER


@pytest.fixture
def without_ddl(conn, database_url) -> Iterator[str]:
    """The URL of a role that may read and write rows, and nothing else."""
    name, password = f"weirkeeper_plain_{secrets.token_hex(4)}", secrets.token_hex(8)
    role = sql.Identifier(name)
    conn.execute(sql.SQL("create role {} login password {}").format(role, password))
    for schema in ("weirkeeper", "site"):
        for grant in (
            "grant usage on schema {} to {}",
            "grant select, insert, update, delete on all tables in schema {} to {}",
            "grant usage on all sequences in schema {} to {}",
        ):
            conn.execute(sql.SQL(grant).format(sql.Identifier(schema), role))
    parts = urlsplit(database_url)
    place = f"{name}:{password}@{parts.hostname}:{parts.port}"
    yield parts._replace(netloc=place).geturl()
    conn.execute(sql.SQL("drop owned by {0}; drop role {0}").format(role))


def test_a_role_that_may_create_nothing_will_do_where_nothing_is_missing(without_ddl):
    assert migrate(without_ddl) == 0


def test_programs_run_no_ddl(without_ddl):
    with connect(without_ddl, "test") as plain:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            plain.execute("create table weirkeeper.planted (id bigint)")
        check_schema(plain)
        declare(plain, load_app(None))
        what = Registration("relay", "relay", None, "0", connections=1, children=0)
        epoch = register(plain, identity(), what)
        assert beat(plain, epoch, "ready", None, [])
        assert processes(plain)[0]["phase"] == "ready"
        assert PostgresRecorder(plain).record("corpus.note.changed", subject="x")
        jobs = PostgresJobs(plain)
        assert int(jobs.enqueue("corpus.index", {"x": 1}, EnqueueOpts(priority=1))) > 0
        stopped(plain, epoch)
