"""docs/events.md tells the truth: its examples run, in its order, on one database."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from relay.relay_pass import RelayPass
from relay.tally import Tally
from shared.postgres.driver.connect import connect
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.queues.catalog import declare
from shared.telemetry.instruments import open_instruments

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "events.md").read_text("utf-8")


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as opened:
        opened.execute("create table orders (id integer)")
        yield opened


def test_what_it_declares_and_records_becomes_the_jobs_that_it_promises(
    database_url, conn, tmp_path
):
    declaring, recording = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {"url": database_url}
    exec(declaring, names)
    with connect(database_url, "tests") as session:
        declare(session, names["app"])
        exec(recording, names)
        instruments = open_instruments(tmp_path, "relay")
        RelayPass(PostgresOutbox(session), Tally(instruments)).turn()
        instruments.close()
    jobs = conn.execute(
        "select kind, args->>'event_id' from weirkeeper.job order by kind"
    ).fetchall()
    assert [kind for kind, _ in jobs] == ["order.ship", "order.total"], "the two lines are merged"
    assert jobs[0][1] == names["event_id"]
    assert conn.execute("select count(*) from orders").fetchone() == (1,)


def test_a_poisoned_event_is_requeued_as_it_says(conn):
    (requeue,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    conn.execute(
        "insert into weirkeeper.event_failure (event_id, failures, poisoned_at)"
        " values (gen_random_uuid(), 5, now()), (gen_random_uuid(), 2, null)"
    )
    assert conn.execute(requeue).rowcount == 1
    assert conn.execute(
        "select failures, poisoned_at from weirkeeper.event_failure order by failures"
    ).fetchall() == [(0, None), (2, None)]
