"""What goes through the webhooks' log in batches, and what is named by hand, costs no more among more.

With plans that a session made while there was little, and with the statistics of that time.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from shared.postgres.driver.connect import Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.webhooks.retention import end_lost, tidy_webhooks
from tests.support.hooks import Hooks
from tests.support.plans import Watch
from tests.support.webhook_crowd import BIG, webhook_crowd

FEW = 40
SIZES = (4_000, 40_000)  # jobs; a fourth as many deliveries wait
PLANNED = 6  # times until a prepared statement has its one plan
SIZE = 100  # deliveries of a batch
TABLES = BIG | {"job", "attempt", "event_failure"}
NAMED = "00000000-0000-0000-0000-000000000001"
LIVING = (
    "insert into weirkeeper.job (id, kind, queue, max_attempts, timeout_ms, awaited)"
    " overriding system value select d.job_id, 'webhook.deliver', 'webhook', 3, 1000, false"
    " from weirkeeper.delivery d where d.job_id > 20"
)
FAILED = (
    "insert into weirkeeper.event_failure (event_id, failures, next_try_at, poisoned_at)"
    " select ('00000000-0000-0000-0000-' || lpad(to_hex(i), 12, '0'))::uuid, 9, 'infinity', now()"
    " from generate_series(1, %s) i"
)


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    for table in TABLES:  # nobody counts them anew
        made.conn.execute(f"alter table weirkeeper.{table} set (autovacuum_enabled = off)")
    yield made
    made.close()


def fill(hooks, number):
    """Instead of what there is; by deletes, for what truncates has plans made anew."""
    for table in ("endpoint_line", "endpoint", "job", "event_failure"):
        hooks.conn.execute(f"delete from weirkeeper.{table}")
    webhook_crowd(hooks.conn, number)
    hooks.conn.execute(LIVING)
    hooks.conn.execute(FAILED, (number,))


WAYS = {
    "one batch": lambda conn: next(end_lost(conn, SIZE)),
    "one event": lambda conn: conn.execute(
        statement("events/requeue"), {"ids": [NAMED]}
    ).fetchall(),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_and_a_name_cost_no_more_among_more(hooks, way):
    found = {}
    for number in SIZES:
        with closing(connect(hooks.url, "plans", Use.HANDLER)) as conn:
            watch = Watch(conn)
            for filled, times in ((FEW, PLANNED), (number, 1)):
                fill(hooks, filled)
                if filled == FEW:
                    hooks.conn.execute("vacuum analyze")
                for _ in range(times):
                    with watch.plans() as plans:
                        assert WAYS[way](conn)
            bad = [f"{said}: {plan.text}" for plan in plans for said in plan.bad(TABLES)]
            assert not bad, "\n".join(bad)
            found[number] = sum(plan.pages for plan in plans)
    least, most = found.values()
    assert most <= 2 * least + 50, f"{least} → {most} pages"


def test_every_lost_delivery_ends_however_many_batches_there_are_before_it(hooks):
    fill(hooks, SIZES[0])
    counts = list(end_lost(hooks.conn, SIZE))
    waited = SIZES[0] // 4
    assert len(counts) == waited // SIZE + 1
    assert sum(counts) == 10  # those of the first twenty jobs that waited
    assert hooks.rows(
        "select count(*) as n from weirkeeper.delivery where state = 'failed' and job_id <= 20"
    ) == [{"n": 10}]
    assert sum(end_lost(hooks.conn, SIZE)) == 0


def test_batches_end_when_there_is_no_time_left(hooks):
    fill(hooks, SIZES[0])
    told = iter(
        (False, False, False, True)
    )  # the secrets, that there are no more, a batch of lost ones
    assert tidy_webhooks(hooks.conn, 3600, lambda: next(told)) == {
        "secrets": 0, "lost": 10, "old": 0, "replays": 0, "whole": 0
    }  # fmt: skip
