"""The application of docs/handlers.md does what the page says, as it stands there."""

from __future__ import annotations

import re

import psycopg
import pytest

import weirkeeper
from tests.support.processes import ROOT
from tests.support.waiting import until

TEXT, *_ = re.findall(
    r"^```python\n(.*?)^```",
    (ROOT / "docs/handlers.md").read_text("utf-8"),
    re.MULTILINE | re.DOTALL,
)
READY = "select count(*) from weirkeeper.process where phase = 'ready'"


@pytest.fixture
def conn(programs, database_url):
    folder = programs.home / "code" / "shop"
    folder.mkdir(parents=True)
    (folder / "background.py").write_text(TEXT)
    (folder / "__init__.py").touch()
    env = {"WEIRKEEPER_APP": "shop.background:app", "PYTHONPATH": str(folder.parent)}
    with psycopg.connect(database_url, autocommit=True) as made:
        made.execute("create table orders (number int, paid int, shipped bool not null)")
        made.execute("insert into orders values (17, 990, false)")
        programs.start("relay", env=env)
        programs.start("workers", "letters", env=env)
        until(lambda: made.execute(READY).fetchone() == (2,), 30, "both processes are ready")
        yield made


def ended(conn, kind):
    rows = conn.execute(
        "select a.outcome, a.result from weirkeeper.attempt a"
        " join weirkeeper.job j on j.id = a.job_id where j.kind = %s order by a.finished_at",
        [kind],
    )
    return rows.fetchall()


def test_it_ships_once_and_totals(programs, conn):
    for _ in range(2):
        weirkeeper.Recorder(conn).record("order.paid", subject="order/17")
    until(lambda: len(ended(conn, "order.ship")) == 2, 20, "both events are handled")
    total = [("completed", {"order": 17, "paid": 990})]
    until(lambda: ended(conn, "order.total") == total, 20, "one total")
    assert conn.execute("select count(*) from orders where shipped").fetchone() == (1,)

    weirkeeper.Jobs(conn).enqueue("order.total", {"order": 18})
    weirkeeper.Jobs(conn).enqueue("order.total", {})
    until(lambda: len(ended(conn, "order.total")) == 3, 20, "three totals")
    assert {outcome for outcome, _ in ended(conn, "order.total")[1:]} == {"snoozed", "discarded"}
    assert "shipped order/17" in "".join(p.text() for p in programs._started)
