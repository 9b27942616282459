"""A disabled endpoint is probed with the oldest delivery that it holds; only a success enables it."""

from __future__ import annotations

import pytest

from shared.postgres.webhooks.deliveries import probe
from shared.webhooks.port import Lease, Standing
from shared.webhooks.times import LEASE
from tests.support.hooks import Handling, Hooks, answered
from workers.handlers.maintenance import probe_webhooks

HOUR = 3600.0
FAILED = {"result": "failed", "code": "server_error", "status": 500}


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


@pytest.fixture
def disabled(hooks):
    """(endpoint, its deliveries in order): disabled for its failures two hours ago."""
    one = hooks.endpoint()
    for _ in range(3):
        hooks.fan_out(hooks.event())
    rows = hooks.rows("select id from weirkeeper.delivery order by event_seq")
    hooks.conn.execute("select weirkeeper.disable_endpoint(%s, 'failing')", (one,))
    hooks.conn.execute(
        "update weirkeeper.endpoint set disabled_at = disabled_at - interval '2 h',"
        " failures = 10, failing_since = clock_timestamp() - interval '6 d'"
    )
    hooks.conn.execute(
        "update weirkeeper.delivery set next_at = clock_timestamp() + interval '5 h'"
    )
    return one, [row["id"] for row in rows]


def why(standing):
    assert isinstance(standing, Standing), standing
    return standing.why


def test_only_what_is_due_is_probed_and_only_its_oldest_delivery_one_at_a_time(hooks, disabled):
    _, (oldest, *others) = disabled
    assert why(hooks.deliveries.lease(oldest, LEASE)) == "disabled"
    assert probe(hooks.conn, 3 * HOUR, 10) == (0, 0)
    paused = hooks.endpoint("you")
    hooks.webhooks.pause("you", paused)
    hooks.conn.execute("update weirkeeper.endpoint set disabled_at = disabled_at - interval '2 h'")
    assert probe(hooks.conn, HOUR, 10) == (1, 1)
    assert probe(hooks.conn, HOUR, 10) == (0, 0), "once an interval"
    [job] = hooks.rows("select args from weirkeeper.job where kind = 'webhook.probe'")
    assert job["args"] == {"delivery_id": str(oldest)}
    assert [why(hooks.deliveries.lease(other, LEASE)) for other in others] == ["disabled"] * 2
    assert isinstance(hooks.deliveries.lease(oldest, LEASE), Lease)
    assert why(hooks.deliveries.lease(oldest, LEASE)) == "busy"


def test_a_failed_probe_changes_nothing_and_spends_nothing(hooks, disabled):
    one, (oldest, *_) = disabled
    probe(hooks.conn, HOUR, 10)
    settled = hooks.deliveries.settle(hooks.leased(oldest), answered(**FAILED, delay=None))
    assert (settled.held, settled.disabled, settled.notice) == (True, None, None)
    assert hooks.webhooks.get("me", one).disabled_reason == "failing"
    assert hooks.opens(one) == "infinity"
    [row] = hooks.rows(
        "select state, attempts, tries from weirkeeper.delivery where id = %s", oldest
    )
    assert row == {"state": "pending", "attempts": 0, "tries": 1}
    [attempt] = hooks.webhooks.attempts("me", str(oldest))
    assert attempt.trigger == "probe"
    assert why(hooks.deliveries.lease(oldest, LEASE)) == "disabled", "a probe is one request"


def test_a_successful_probe_enables_and_lets_go_what_was_held(hooks, disabled):
    one, (oldest, *others) = disabled
    probe(hooks.conn, HOUR, 10)
    hooks.deliveries.settle(hooks.leased(oldest), answered())
    found = hooks.webhooks.get("me", one)
    assert (found.enabled, found.failures, found.waiting) == (True, 0, 2)
    assert hooks.opens(one) == "-infinity"
    hooks.conn.execute("update weirkeeper.delivery set next_at = null")
    hooks.deliveries.settle(hooks.leased(others[0]), answered())
    [attempt] = hooks.webhooks.attempts("me", str(others[0]))
    assert attempt.trigger == "auto"


def test_one_that_says_that_it_is_gone_is_probed_no_more_and_its_owner_told(hooks, disabled):
    one, (oldest, *_) = disabled
    probe(hooks.conn, HOUR, 10)
    gone = answered(**{**FAILED, "code": "gone", "status": 410}, delay=0.0, disable="gone")
    assert hooks.deliveries.settle(hooks.leased(oldest), gone).disabled == "gone"
    assert hooks.webhooks.get("me", one).disabled_reason == "gone"
    assert probe(hooks.conn, 0, 10) == (0, 0)


def test_the_periodic_job_goes_by_the_setting(hooks, disabled, monkeypatch):
    assert probe_webhooks.handle(Handling(hooks.conn), {}).result["probes"] == 0
    monkeypatch.setenv("WEIRKEEPER_WEBHOOK_PROBE_HOURS", "1")
    assert probe_webhooks.handle(Handling(hooks.conn), {}).result == {"probes": 1}
