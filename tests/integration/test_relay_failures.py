"""Rows that cannot be fanned out: they leave the line, are tried again, and are poisoned at last."""

from __future__ import annotations

import psycopg
import pytest

from relay.relay_pass import RelayPass
from relay.tally import Tally
from shared.backoff import Backoff
from shared.errors import DatabaseRefused, DatabaseUnavailable, ValuesRefused
from tests.support.outbox import Desk


@pytest.fixture
def desk(database_url, tmp_path):
    opened = Desk(database_url, tmp_path)
    yield opened
    opened.close()


def failures(desk):
    return desk.rows(
        "select event_id::text as event, failures, last_error, poisoned_at is not null as poisoned"
        " from weirkeeper.event_failure order by event_id"
    )


def test_a_poison_row_costs_its_neighbours_nothing(desk):
    desk.refuse("bad")
    before = [desk.record("order.paid", f"good/{n}") for n in range(3)]
    bad = desk.record("order.paid", "bad")
    after = [desk.record("order.paid", f"good/{n}") for n in range(3, 6)]
    done = desk.relay.turn()
    assert (done.rows, done.jobs) == (6, 18)
    assert all(desk.fanout(event) for event in (*before, *after))
    assert desk.fanout(bad) is None
    assert desk.count("event_pending") == 0
    (failure,) = failures(desk)
    assert (failure["event"], failure["poisoned"]) == (bad, False)
    assert failure["last_error"].startswith("no job for bad")


def test_five_failures_poison_and_the_row_is_kept(desk):
    desk.refuse("bad")
    bad = desk.record("order.paid", "bad")
    desk.outbox.set_aside(desk.outbox.pending()[0], "the first failure", 0.0)
    for tries in range(2, 6):
        desk.relay.turn()
        (failure,) = failures(desk)
        assert (failure["failures"], failure["poisoned"]) == (tries, tries == 5)
    desk.relay.turn()
    assert failures(desk)[0]["failures"] == 5, "never tried again by itself"
    counted = desk.instruments.relay_events_failed_total
    assert [counted.labels(r).get() for r in ("retried", "poisoned")] == [3, 1]

    desk.allow()
    desk.conn.execute(  # requeued by hand, its count cleared (docs/events.md)
        "update weirkeeper.event_failure set failures = 0, poisoned_at = null,"
        " next_try_at = clock_timestamp() where event_id = %s",
        [bad],
    )
    assert desk.relay.turn().jobs == 3
    assert set(desk.fanout(bad)) == {"ship", "audit", "total"}
    assert failures(desk) == []


def test_a_failing_row_waits_for_its_own_next_try(desk):
    relay = RelayPass(desk.outbox, Tally(desk.instruments), Backoff(base=60))
    desk.refuse("bad")
    desk.record("order.paid", "bad")
    for _ in range(3):
        relay.turn()
    (failure,) = failures(desk)
    assert failure["failures"] == 1
    (due,) = desk.rows(
        "select extract(epoch from next_try_at - clock_timestamp())::float as s"
        " from weirkeeper.event_failure"
    )
    assert 55 < due["s"] <= 72


def test_a_row_that_recovers_is_fanned_out_once(desk):
    desk.refuse("bad")
    bad = desk.record("order.paid", "bad")
    desk.relay.turn()
    desk.allow()
    desk.relay.turn()
    desk.relay.turn()
    assert len(desk.jobs("ship")) == 1
    assert desk.fanout(bad)["ship"] == desk.jobs("ship")[0]["id"]


def test_a_failure_is_counted_once_however_many_relays_saw_it(desk):
    desk.refuse("bad")
    bad = desk.record("order.paid", "bad")
    desk.relay.turn()
    assert desk.outbox.failed_again(bad, 1, "seen by one", 0.0) is False
    assert desk.outbox.failed_again(bad, 1, "seen by another", 0.0) is False
    assert failures(desk)[0]["failures"] == 2


def test_a_pass_that_no_row_is_to_blame_for_sets_nothing_aside(desk):
    desk.record("order.paid", "order/1")
    desk.conn.execute("alter table weirkeeper.event_fanout rename to elsewhere")
    with pytest.raises(DatabaseRefused) as refused:
        desk.relay.turn()
    assert not isinstance(refused.value, ValuesRefused)
    desk.conn.execute("alter table weirkeeper.elsewhere rename to event_fanout")
    assert failures(desk) == []
    assert desk.relay.turn().jobs == 3


def test_a_read_only_server_fails_the_pass_and_nothing_else(desk):
    desk.record("order.paid", "order/1")
    desk.session.execute("set default_transaction_read_only = on")
    with pytest.raises(DatabaseUnavailable):
        desk.relay.turn()
    assert desk.instruments.relay_passes_total.labels("error").get() == 1
    desk.session.execute("set default_transaction_read_only = off")
    assert desk.relay.turn().jobs == 3


def test_a_pass_that_is_killed_has_done_nothing(desk):
    desk.record("order.paid", "order/1")
    with psycopg.connect(desk.url) as blocker:
        blocker.execute("lock table weirkeeper.event_fanout in share mode")
        desk.session.execute("set lock_timeout = '100ms'")
        with pytest.raises(DatabaseUnavailable):
            desk.relay.turn()
    assert desk.count("event_pending") == 1
    assert desk.count("job") == desk.count("ready") == 0
