"""Leases and settles: one request at a time to an endpoint, and one truth about how it fares."""

from __future__ import annotations

import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest

from shared.config.installation import schema_name
from shared.postgres.driver.connect import connect
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.webhooks.headers import open_headers
from shared.webhooks.port import Lease, Standing
from shared.webhooks.sealing import Sealer
from shared.webhooks.times import LEASE
from tests.support.hooks import SECRET, Hooks, answered
from tests.support.waiting import until


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


@pytest.fixture
def one(hooks):
    return hooks.endpoint()


def sent(hooks, endpoint_id, **fields):
    """A delivery of a new event, tried once."""
    hooks.fan_out(hooks.event())
    delivery = hooks.delivery(endpoint_id)["id"]
    settled = hooks.deliveries.settle(hooks.leased(delivery), answered(**fields))
    assert settled.held
    return delivery, settled


def aged(hooks, endpoint_id, days, failures):
    """The endpoint has been failing for so long and so often."""
    hooks.conn.execute(
        "update weirkeeper.endpoint set failing_since = clock_timestamp() - make_interval(days => %s),"
        " failures = %s where id = %s",
        (days, failures, endpoint_id),
    )


def endpoint(hooks, endpoint_id):
    return hooks.webhooks.get("me", endpoint_id)


def test_a_lease_tells_everything_that_a_request_takes(hooks):
    one = hooks.endpoint(headers={"X-A": "b"}, schedule=(1, 2))
    event = hooks.event()
    hooks.fan_out(event)
    lease = hooks.leased(hooks.delivery(one)["id"])
    assert (lease.event_id, lease.owner_id, lease.trigger) == (event, "me", "auto")
    assert (
        open_headers(Sealer([SECRET]), lease.headers, "me"),
        lease.schedule,
        lease.attempts,
    ) == (
        {"X-A": "b"},
        (1.0, 2.0),
        0,
    )
    assert 0 < lease.seconds <= LEASE
    assert len(lease.sealed) == 1
    assert lease.body == bytes(hooks.delivery(one)["body"])


def test_only_one_holds_it_and_the_others_learn_when_to_come_back(hooks, one):
    for _ in range(2):
        hooks.fan_out(hooks.event())
    first, second = (
        row["id"] for row in hooks.rows("select id from weirkeeper.delivery order by id")
    )
    lease = hooks.leased(first)
    refused = hooks.deliveries.lease(second, LEASE)
    assert isinstance(refused, Standing)
    assert refused.why == "busy"
    assert 0 < refused.seconds <= LEASE
    assert refused.parks, "it waits under the key, and comes back with the lease"
    assert hooks.opens(one) > datetime.now(UTC).isoformat(" ")[:10]
    hooks.deliveries.settle(lease, answered())
    hooks.leased(second)


def test_a_key_is_never_closed_for_a_lease_that_is_given_back_at_that_moment(
    hooks, one, database_url
):
    """Whoever found it busy closes the key, while whoever had the lease settles."""
    for _ in range(2):
        hooks.fan_out(hooks.event())
    first, second = (
        row["id"] for row in hooks.rows("select id from weirkeeper.delivery order by id")
    )
    lease = hooks.leased(first)
    told: list[Standing] = []
    with closing(connect(database_url, "another")) as other:
        late = PostgresDeliveries(other)
        thread = threading.Thread(target=lambda: told.append(late._standing("busy", second)))
        with hooks.conn.transaction():
            hooks.deliveries.settle(lease, answered())
            thread.start()
            waits = "select wait_event_type from pg_stat_activity where application_name like %s"
            seen = f"{schema_name()} another"
            with closing(connect(database_url, "looker")) as looker:
                until(lambda: looker.execute(waits, [seen]).fetchone() == ("Lock",), 10, "it waits")
        thread.join(10)
    assert [answer.parks for answer in told] == [False]
    assert hooks.rows("select name from weirkeeper.key where open_at > '-infinity'") == []


def test_of_many_at_once_exactly_one_is_let_through(hooks, one, database_url):
    for _ in range(8):
        hooks.fan_out(hooks.event())
    ids = [row["id"] for row in hooks.rows("select id from weirkeeper.delivery")]
    granted, start = [], threading.Barrier(len(ids))

    def ask(delivery):
        conn = connect(database_url, "racer")
        start.wait(10)
        granted.append(PostgresDeliveries(conn).lease(delivery, LEASE))
        conn.close()

    threads = [threading.Thread(target=ask, args=(one,)) for one in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sum(isinstance(answer, Lease) for answer in granted) == 1
    assert {answer.why for answer in granted if isinstance(answer, Standing)} == {"busy"}


def test_a_settle_whose_lease_is_anothers_changes_nothing(hooks, one):
    hooks.fan_out(hooks.event())
    delivery = hooks.delivery(one)["id"]
    late = hooks.leased(delivery)
    hooks.conn.execute(
        "update weirkeeper.endpoint set busy_until = clock_timestamp() - interval '1 s'"
    )
    now = hooks.leased(delivery)
    before = hooks.rows("select * from weirkeeper.delivery, weirkeeper.endpoint")
    settled = hooks.deliveries.settle(late, answered())
    assert not settled.held
    hooks.deliveries.release(late)
    assert hooks.rows("select * from weirkeeper.delivery, weirkeeper.endpoint") == before
    assert hooks.webhooks.attempts("me", str(delivery)) == []
    assert hooks.deliveries.settle(now, answered()).held
    assert len(hooks.webhooks.attempts("me", str(delivery))) == 1


def test_a_success_ends_the_delivery_and_clears_what_failed_before(hooks, one):
    sent(hooks, one, result="failed", code="server_error", delay=5.0, status=500)
    assert endpoint(hooks, one).failures == 1
    delivery, settled = sent(
        hooks, one, phases={"dns": 1.5}, headers=[("server", "x")], body=b"ok\xff"
    )
    assert (settled.attempts, settled.disabled, settled.notice) == (1, None, None)
    after = endpoint(hooks, one)
    assert (after.failing_since, after.failures) == (None, 0)
    assert after.last_success_at is not None
    [attempt] = hooks.webhooks.attempts("me", str(delivery))
    assert (attempt.result, attempt.status, attempt.phases) == ("delivered", 200, {"dns": 1.5})
    assert (attempt.headers, attempt.body) == ([["server", "x"]], "ok\ufffd")
    assert hooks.delivery(one)["state"] == "delivered"
    assert hooks.deliveries.lease(delivery, LEASE).why == "ended"


def test_a_failure_waits_for_its_next_try_and_the_others_go_on(hooks, one):
    delivery, _ = sent(hooks, one, result="failed", code="server_error", delay=60.0, status=500)
    early = hooks.deliveries.lease(delivery, LEASE)
    assert early.why == "early"
    assert 50 < early.seconds <= 60
    sent(hooks, one)


def test_the_last_failure_ends_the_delivery(hooks, one):
    sent(hooks, one, result="failed", code="client_error", status=404)
    assert hooks.delivery(one)["state"] == "failed"


def test_an_asked_for_pause_holds_the_whole_endpoint_and_spends_nothing(hooks, one):
    sent(hooks, one, result="deferred", code="asked_to_wait", delay=90.0, pause=90.0, status=429)
    row = hooks.delivery(one)
    assert (row["attempts"], row["tries"]) == (0, 1)
    assert endpoint(hooks, one).failures == 0
    hooks.fan_out(hooks.event())
    paused = hooks.deliveries.lease(hooks.delivery(one)["id"], LEASE)
    assert paused.why == "paused"
    assert 80 < paused.seconds <= 90
    assert datetime.fromisoformat(hooks.opens(one)) > datetime.now(UTC) + timedelta(seconds=80)


def test_gone_disables_at_once_and_holds_the_delivery(hooks, one):
    _, settled = sent(
        hooks, one, result="failed", code="gone", delay=0.0, disable="gone", status=410
    )
    assert (settled.disabled, settled.notice) == ("gone", 100)
    after = endpoint(hooks, one)
    assert (after.enabled, after.disabled_reason) == (False, "gone")
    assert hooks.delivery(one)["state"] == "pending"
    assert hooks.opens(one) == "infinity"
    hooks.fan_out(hooks.event())  # what comes later is not held for it
    assert hooks.rows("select count(*) as n from weirkeeper.delivery")[0]["n"] == 1


@pytest.mark.parametrize(
    ("days", "failures", "disabled", "notice"),
    [
        (4.9, 50, None, 50),
        (6, 8, None, 50),  # nine in all: too few
        (6, 9, "failing", 100),
        (1, 50, None, None),
    ],
)
def test_five_days_of_failures_and_ten_of_them_disable(
    hooks, one, days, failures, disabled, notice
):
    hooks.fan_out(hooks.event())
    hooks.conn.execute(
        "update weirkeeper.endpoint set failures = %s,"
        " failing_since = clock_timestamp() - make_interval(hours => %s)",
        (failures, round(days * 24)),
    )
    lease = hooks.leased(hooks.delivery(one)["id"])
    settled = hooks.deliveries.settle(
        lease, answered(result="failed", code="server_error", delay=5.0, status=500)
    )
    assert (settled.disabled, settled.notice) == (disabled, notice)
    told = [event["type"] for event in hooks.rows("select type from weirkeeper.event order by seq")]
    expected = {None: [], 50: ["webhook.endpoint.failing"], 100: ["webhook.endpoint.disabled"]}
    assert told[1:] == expected[notice]


def test_half_of_the_window_is_told_once_and_resuming_begins_anew(hooks, one):
    aged(hooks, one, 3, 9)
    _, first = sent(hooks, one, result="failed", code="server_error", delay=1.0)
    _, second = sent(hooks, one, result="failed", code="server_error", delay=1.0)
    assert (first.notice, second.notice) == (50, None)
    aged(hooks, one, 6, 11)
    _, third = sent(hooks, one, result="failed", code="server_error", delay=1.0)
    assert third.disabled == "failing"
    hooks.webhooks.resume("me", one)
    assert (endpoint(hooks, one).failures, endpoint(hooks, one).failing_since) == (0, None)
    _, fourth = sent(hooks, one, result="failed", code="server_error", delay=1.0)
    assert (fourth.disabled, fourth.notice) == (None, None)


def test_in_strict_order_nothing_overtakes_a_failing_head(hooks):
    one = hooks.endpoint(ordering="strict")
    head, _ = sent(hooks, one, result="failed", code="server_error", delay=60.0, status=500)
    hooks.fan_out(hooks.event())
    later = hooks.delivery(one)["id"]
    behind = hooks.deliveries.lease(later, LEASE)
    assert behind.why == "behind"
    assert 50 < behind.seconds <= 60
    assert datetime.fromisoformat(hooks.opens(one)) > datetime.now(UTC) + timedelta(seconds=50)
    hooks.conn.execute("update weirkeeper.delivery set next_at = null where id = %s", (head,))
    hooks.deliveries.settle(hooks.leased(head), answered())
    hooks.leased(later)


def test_a_rate_spaces_requests_by_the_key(hooks):
    one = hooks.endpoint(rate=6)
    sent(hooks, one)
    opens = datetime.fromisoformat(hooks.opens(one))
    assert timedelta(seconds=8) < opens - datetime.now(UTC) <= timedelta(seconds=10)


def test_a_lease_given_back_leaves_no_trace(hooks, one):
    hooks.fan_out(hooks.event())
    delivery = hooks.delivery(one)["id"]
    hooks.deliveries.release(hooks.leased(delivery))
    assert hooks.webhooks.attempts("me", str(delivery)) == []
    hooks.leased(delivery)


def test_a_delivery_that_is_gone_is_no_error(hooks):
    assert hooks.deliveries.lease(12345, LEASE) == Standing("gone", None)
