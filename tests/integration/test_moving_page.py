"""docs/moving.md tells the truth: its application works, and its statement moves what waits."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import psycopg
import pytest

import weirkeeper
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from weirkeeper.testing import MemoryRuntime

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "moving.md").read_text("utf-8")
[CODE] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[MOVE] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
# As far as the statement knows it.
THEIRS = """
    create type procrastinate_job_status as enum ('todo', 'doing', 'succeeded', 'failed');
    create table procrastinate_jobs (
      id bigserial primary key, queue_name varchar(128) not null, task_name varchar(128) not null,
      priority integer not null default 0, lock text, queueing_lock text,
      args jsonb not null default '{}', status procrastinate_job_status not null default 'todo',
      scheduled_at timestamptz, attempts integer not null default 0)"""


@pytest.fixture
def shop(monkeypatch) -> ModuleType:
    module = ModuleType("shop")
    exec(compile(CODE, "docs/moving.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "shop", module)
    return module


def test_its_application_works(shop):
    runtime = MemoryRuntime(shop.app)
    job = shop.paid(runtime, 17, copies=2)
    assert shop.paid(runtime, 17) == job
    lost = shop.paid(runtime, 0)
    assert runtime.run_due() == 0
    runtime.clock.advance((datetime.now(UTC) - runtime.clock.wall()).total_seconds() + 61)
    runtime.run_due()
    assert runtime.wait(job, 0).result == {"copies": 2}
    assert runtime.wait(lost, 0).state == "discarded"
    assert shop.MAILED == [(17, 2)]


def test_it_enqueues_in_the_callers_transaction(shop, database_url):
    with connect(database_url, "test") as conn:
        declare(conn, shop.app.check())
    with psycopg.connect(database_url) as conn:
        job = shop.paid(weirkeeper.Jobs(conn), 17)
        conn.rollback()
        assert conn.execute("select count(*) from weirkeeper.job").fetchone() == (0,)
        assert int(shop.paid(weirkeeper.Jobs(conn), 17)) > int(job)


def test_its_statement_moves_what_waits(shop, database_url):
    later = datetime.now(UTC) + timedelta(hours=1)
    with connect(database_url, "test") as conn:
        declare(conn, shop.app.check())
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(THEIRS)
        conn.cursor().executemany(
            "insert into procrastinate_jobs (queue_name, task_name, args, status, scheduled_at,"
            " priority) values ('mail', %s, jsonb_build_object('order_id', %s::int), %s, %s, %s)",
            [
                ("send_receipt", 1, "todo", None, 0),
                ("send_receipt", 2, "doing", None, 0),
                ("another", 3, "todo", None, 0),
                ("send_receipt", 4, "todo", later, 9),
            ],
        )
        assert conn.execute(MOVE).fetchone() == (2,)
        assert conn.execute(MOVE).fetchone() == (0,)
        moved = conn.execute(
            "select args->>'order_id', priority, run_at, kind from weirkeeper.job order by id"
        ).fetchall()
        assert moved == [("1", 2, None, "receipt.send"), ("4", 1, later, "receipt.send")]
        left = conn.execute("select args->>'order_id' from procrastinate_jobs order by id")
        assert left.fetchall() == [("2",), ("3",)]


def test_what_the_table_names_is_there():
    names = set(
        re.findall(r"`(Kind|App|Queue|Jobs|Retry|Discard|Snooze|Completed|Periodic)\(", PAGE)
    )
    assert len(names) > 6
    assert all(hasattr(weirkeeper, name) for name in names)
