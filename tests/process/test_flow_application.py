"""An application of its own runs on the engine, with the site or without it."""

from __future__ import annotations

import psycopg
import pytest

from tests.support.flow import Flow, answer
from tests.support.processes import ROOT
from tests.support.waiting import until

PAID = """select weirkeeper.record_event('order.paid', subject => %s, data => %s::jsonb)"""


@pytest.fixture(params=["orders:app", "orders:with_site"])
def environment(request, empty_database_url):
    return {
        "WEIRKEEPER_APP": request.param,
        "PYTHONPATH": str(ROOT / "docs" / "examples"),
        "DATABASE_URL": empty_database_url,
    }


@pytest.fixture
def flow(programs, environment, empty_database_url):
    migrated = programs.start("panel.cli.main", "migrate", env=environment)
    assert migrated.wait(60) == 0, migrated.text()
    commands = (("relay",), ("workers", "notify"), ("workers", "maintenance"))
    for command in commands:
        programs.start(*command, env=environment)
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        found = Flow(conn)
        found.until_ready("relay", "notify", "maintenance")
        yield found


def result(flow, kind):
    until(lambda: flow.open_jobs() == 0, 20, "every job ended")
    return flow.conn.execute(
        "select a.state, a.result, a.error from weirkeeper.attempt a"
        " join weirkeeper.job j on j.id = a.job_id where j.kind = %s order by j.id, a.run",
        (kind,),
    ).fetchall()


def test_events_kinds_and_reports(programs, flow, environment):
    for number, data in ((17, '{"cents": 990}'), (18, '{"cents": 10}'), (19, "{}")):
        flow.conn.execute(PAID, (f"order/{number}", data))
    receipts = "select count(*) from weirkeeper.job where kind = 'receipt.number'"
    until(lambda: flow.one(receipts) == 3, 10, "the events are jobs")
    receipts = result(flow, "receipt.number")
    year = flow.one("select to_char(now() at time zone 'UTC', 'YYYY')")
    assert [r[:2] for r in receipts] == [
        ("completed", {"receipt": f"R-{year}-17", "cents": 990}),
        ("completed", {"receipt": f"R-{year}-18", "cents": 10}),
        ("discarded", None),
    ]
    today = flow.one("select (now() at time zone 'UTC')::date::text")
    for args in (f'{{"day": "{today}"}}', '{"day": "never"}'):
        flow.conn.execute("select weirkeeper.enqueue('report.daily', %s::jsonb)", (args,))
    done, refused = result(flow, "report.daily")
    assert done[:2] == ("completed", {"day": today, "orders": 3, "cents": 1000})
    assert refused[0] == "discarded"
    assert "expected a day such as 2026-11-29" in refused[2]
    listed = answer(programs, "jobs", "list", "--kind", "report.daily", env=environment)
    assert [job["state"] for job in listed] == ["discarded", "completed"]


def test_the_engine_knows_only_what_is_declared(flow, environment):
    rows = flow.conn.execute(
        "select name from weirkeeper.kind where name !~ '^(weirkeeper|webhook)[.]'"
    )
    known = {row[0] for row in rows}
    site = {"corpus.index", "corpus.reindex"}
    wanted = {"receipt.number", "report.daily"}
    assert known == (wanted if environment["WEIRKEEPER_APP"] == "orders:app" else wanted | site)
    if environment["WEIRKEEPER_APP"] == "orders:app":
        with pytest.raises(psycopg.Error, match="expected a declared type"):
            flow.conn.execute(
                "insert into site.note (owner_id, genre, title) values ('o', 'raw', 'x')"
            )
