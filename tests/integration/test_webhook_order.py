"""Strict order, step by step: relays take turns, fan-outs wait in line, deliveries stand behind each other."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.queues import controls
from shared.postgres.webhooks.deliveries import PostgresDeliveries
from shared.webhooks.port import Standing
from shared.webhooks.times import LEASE
from tests.support.hooks import Hooks, answered
from tests.support.waiting import until

LINE = "select event_id::text as id from weirkeeper.endpoint_line order by event_seq"
MADE = "select event_id::text as id from weirkeeper.delivery order by job_id"


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


@pytest.fixture
def session(database_url):
    """Makes sessions."""
    with ExitStack() as held:
        yield lambda: held.enter_context(connect(database_url, "another"))


@contextmanager
def beside(call):
    """Run it in a thread of its own; what it gives comes into the list, last of all within."""
    found = []
    thread = threading.Thread(target=lambda: found.append(call()))
    thread.start()
    yield found
    thread.join(30)
    assert found, "it came to no end"


def until_it_waits(hooks, session) -> None:
    """Wait until a session waits for a lock."""
    query = "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
    until(lambda: hooks.rows(query, session.info.backend_pid), 20, "it waits for a lock")


def ids(hooks, query: str) -> list[str]:
    return [row["id"] for row in hooks.rows(query)]


def test_while_an_endpoint_keeps_order_relays_take_turns(hooks, session):
    hooks.endpoint(ordering="strict")
    older = hooks.event()
    first, second = session(), session()
    first.execute("begin")
    assert PostgresOutbox(first).next_pass().rows == 1
    younger = hooks.event()
    with beside(PostgresOutbox(second).next_pass) as told:
        until_it_waits(hooks, second)
        assert told == []
        assert ids(hooks, LINE) == []
        first.execute("commit")
    assert [done.rows for done in told] == [1]
    assert ids(hooks, LINE) == [older, younger]
    assert hooks.fan_out(younger) == 2, "with the one before it"
    assert hooks.fan_out(older) == 0
    assert ids(hooks, MADE) == [older, younger]
    assert ids(hooks, LINE) == []


def test_while_none_keeps_order_no_relay_waits_for_another(hooks, session):
    hooks.endpoint()
    hooks.event()
    first, second = session(), session()
    first.execute("begin")
    assert PostgresOutbox(first).next_pass().rows == 1
    hooks.event()
    assert PostgresOutbox(second).next_pass().rows == 1
    first.execute("commit")
    assert ids(hooks, LINE) == []


@pytest.mark.parametrize("late", [1, 3], ids=["an older one", "a younger one"])
def test_a_fan_out_waits_for_one_that_takes_from_the_same_line(hooks, session, late):
    one = int(hooks.endpoint(ordering="strict"))
    events = [hooks.event() for _ in range(4)]
    with connect(hooks.url, "relay") as relay:
        PostgresOutbox(relay).next_pass()
    first, second = session(), session()
    first.execute("begin")
    assert PostgresDeliveries(first).line(one, events[2]) == events[:3]
    with beside(lambda: PostgresDeliveries(second).line(one, events[late])) as told:
        until_it_waits(hooks, second)
        assert told == []
        first.execute("commit")
    assert told == [[events[late]]], "itself alone: the rest was taken"


def strict(hooks, number: int) -> tuple[str, list[int]]:
    """(an endpoint that keeps order, its deliveries in order)."""
    one = hooks.endpoint(ordering="strict")
    made = []
    for _ in range(number):
        hooks.fan_out(hooks.event())
        made.append(hooks.delivery(one)["id"])
    return one, made


def why(hooks, delivery: int) -> str:
    found = hooks.deliveries.lease(delivery, LEASE)
    assert isinstance(found, Standing), found
    return found.why


def test_one_that_comes_too_early_waits_under_the_key_and_the_head_lets_it_go(hooks):
    one, (head, later) = strict(hooks, 2)
    found = hooks.deliveries.lease(later, LEASE)
    assert (found.why, found.parks) == ("behind", True)
    opens = datetime.fromisoformat(hooks.opens(one)) - datetime.now(UTC)
    assert timedelta(0) < opens <= timedelta(seconds=1), "so that it is not claimed again at once"
    hooks.deliveries.settle(hooks.leased(head), answered())
    assert hooks.opens(one) == "-infinity", "its settle opens it"
    hooks.leased(later)


def test_one_that_comes_too_early_is_held_until_the_heads_next_try(hooks):
    one, (head, later) = strict(hooks, 2)
    failed = answered(result="failed", code="server_error", delay=60.0, status=500)
    hooks.deliveries.settle(hooks.leased(head), failed)
    hooks.conn.execute("update weirkeeper.key set open_at = '-infinity'")  # as a look by hand may
    assert why(hooks, later) == "behind"
    opens = datetime.fromisoformat(hooks.opens(one)) - datetime.now(UTC)
    assert timedelta(seconds=50) < opens <= timedelta(seconds=60)


def test_what_is_sent_again_stands_behind_all_that_waits_in_the_order_of_asking(hooks):
    one, made = strict(hooks, 5)
    for delivery in made[:3]:
        hooks.deliveries.settle(hooks.leased(delivery), answered())
    again = [made[1], made[0]]
    for delivery in again:
        assert hooks.webhooks.redeliver("me", delivery_id=str(delivery)) == [str(delivery)]
    hooks.fan_out(hooks.event())
    order = [*made[3:], *again, hooks.delivery(one)["id"]]
    while order:
        assert {why(hooks, other) for other in order[1:]} <= {"behind"}
        hooks.deliveries.settle(hooks.leased(order.pop(0)), answered())


def test_a_head_that_is_given_up_or_cancelled_holds_nothing_up(hooks):
    _, (failing, unwanted, last) = strict(hooks, 3)
    assert why(hooks, last) == "behind"
    failed = answered(result="failed", code="client_error", status=404)
    hooks.deliveries.settle(hooks.leased(failing), failed)
    assert why(hooks, last) == "behind"
    [row] = hooks.rows("select job_id from weirkeeper.delivery where id = %s", unwanted)
    controls.cancel(hooks.conn, [row["job_id"]])
    hooks.end_lost()
    hooks.leased(last)
