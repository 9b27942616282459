"""A lease and a settle look their rows up, whatever waits elsewhere: no plan of theirs reads a crowd.

A child plans them once, while few deliveries are pending, and keeps the plan: an index of pending
deliveries alone is tiny then, and was read whole for each lease when thousands waited for one endpoint.
"""

from __future__ import annotations

from contextlib import closing

import pytest

from shared.postgres.driver.connect import Use, connect
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.webhooks.port import Lease
from shared.webhooks.times import LEASE
from tests.support.hooks import Hooks, answered
from tests.support.plans import Watch

PLANNED = 8  # times until each statement has its one plan
CROWD = 10_000
TABLES = frozenset({"delivery", "endpoint", "delivery_attempt", "endpoint_secret", "key"})
REPORTS = {
    "delivered": answered(),
    "failed": answered(result="failed", code="refused", delay=60.0, pause=0.0, status=None),
}
# Of an endpoint whose owner has them all waiting, without their jobs.
WAITING = (
    "insert into weirkeeper.delivery"
    " (endpoint_id, event_id, event_seq, event_type, owner_id, body, trigger)"
    " select %s, gen_random_uuid(), i, 'corpus.note.changed', 'dead', 'x', 'auto'"
    " from generate_series(1, %s) i"
)
OTHERS = (
    "insert into weirkeeper.endpoint (owner_id, url, event_types)"
    " select 'other ' || i, 'https://example.org/', '{corpus.*}' from generate_series(1, %s) i"
)


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    for table in TABLES:  # nobody counts them anew
        made.conn.execute(f"alter table weirkeeper.{table} set (autovacuum_enabled = off)")
    yield made
    made.close()


def ready(hooks, endpoint) -> int:
    """A delivery that may be sent."""
    hooks.fan_out(hooks.event())
    hooks.conn.execute(
        "update weirkeeper.endpoint set not_before = null where id = %s", (endpoint,)
    )
    return int(hooks.delivery(endpoint)["id"])


def send(deliveries: PostgresDeliveries, delivery: int, report) -> None:
    lease = deliveries.lease(delivery, LEASE)
    assert isinstance(lease, Lease), lease
    assert deliveries.settle(lease, report).held


@pytest.mark.parametrize("result", REPORTS)
@pytest.mark.parametrize("counted", [False, True], ids=["never counted", "counted while few"])
def test_a_delivery_costs_no_more_beside_ten_thousand_that_wait(hooks, result, counted):
    one, dead = hooks.endpoint(), hooks.endpoint("dead")
    report = REPORTS[result]
    for _ in range(200):  # delivered; none of them waits
        hooks.fan_out(hooks.event())
    hooks.conn.execute("update weirkeeper.delivery set state = 'delivered', ended_at = now()")
    with closing(connect(hooks.url, "plans", Use.HANDLER)) as conn:
        if counted:
            hooks.conn.execute("vacuum analyze weirkeeper.delivery, weirkeeper.endpoint")
        deliveries, watch = PostgresDeliveries(conn), Watch(conn)
        for _ in range(PLANNED):
            send(deliveries, ready(hooks, one), report)
        delivery = ready(hooks, one)
        with watch.plans() as few:
            send(deliveries, delivery, report)
        send(deliveries, ready(hooks, one), report)  # what was rolled back took prepared ones along
        hooks.conn.execute(WAITING, (dead, CROWD))
        hooks.conn.execute(OTHERS, (CROWD // 5,))
        with watch.plans() as many:
            send(deliveries, delivery, report)
    bad = [f"{said}: {plan.text}" for plan in many for said in plan.bad(TABLES)]
    assert not bad, "\n".join(bad)
    # An index is a page or two deeper.
    least, most = sum(plan.pages for plan in few), sum(plan.pages for plan in many)
    assert most <= 2 * least + 50, f"{least} → {most} pages"
