"""What `explain` finds out of the database: each reason for which an event is not there (yet)."""

from __future__ import annotations

import pytest

from shared.errors import NotFound
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.queues import controls
from tests.support.hooks import Hooks, answered

FAILED = {"result": "failed", "code": "server_error", "status": 500}
RAN = (
    "insert into weirkeeper.attempt (job_id, run, attempt, outcome, state, error, started_at)"
    " values (%s, 1, 1, %s, %s, 'no', clock_timestamp())"
)
FINISHED = (
    "with gone as (delete from weirkeeper.ready where job_id = %(id)s)"
    " insert into weirkeeper.attempt (job_id, run, attempt, outcome, state)"
    " select %(id)s, coalesce(max(run), 0) + 1, 1, 'completed', 'completed'"
    " from weirkeeper.attempt where job_id = %(id)s"
)


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    made.outbox = PostgresOutbox(made.conn)
    yield made
    made.close()


@pytest.fixture
def says(hooks):
    """Asks for the sentence of an event and an endpoint."""
    return lambda one, event, who="me": hooks.webhooks.explain(who, one, event).sentence


def fanned(hooks, event: str) -> None:
    """The relay has passed it, and its fan-out has run."""
    hooks.outbox.next_pass()
    for row in jobs_of(hooks, event):
        hooks.fan_out(event)
        hooks.conn.execute(FINISHED, {"id": row})


def jobs_of(hooks, event: str) -> list[int]:
    """Jobs that make deliveries of an event."""
    query = "select id from weirkeeper.job where kind = 'webhook.fanout' and event_id = %s"
    return [row["id"] for row in hooks.rows(query, event)]


def test_on_its_way_to_become_a_delivery(hooks, says):
    one = hooks.endpoint()
    event = hooks.event()
    assert says(one, event) == "Not yet: the event waits for the relay."
    hooks.outbox.next_pass()
    assert says(one, event).startswith("Not yet: the event was fanned out, and its deliveries are")
    [job] = jobs_of(hooks, event)
    controls.cancel(hooks.conn, [job])
    assert f"was cancelled; `weirkeeper jobs retry {job}`" in says(one, event)
    controls.retry(hooks.conn, [job])
    assert says(one, event).startswith("Not yet: the event was fanned out, and its deliveries are")
    fanned(hooks, event)
    assert says(one, event) == "Waits for its turn."


@pytest.mark.parametrize("others", [True, False], ids=["another wanted it", "nobody wanted it"])
def test_one_that_was_disabled_meanwhile_is_not_told_to_wait(hooks, says, others):
    one = hooks.endpoint()
    hooks.conn.execute("select weirkeeper.disable_endpoint(%s, 'gone')", (one,))
    if others:
        hooks.endpoint()
    event = hooks.event()
    fanned(hooks, event)
    assert says(one, event).startswith("Not sent: the endpoint answered that it is gone")
    hooks.webhooks.resume("me", one)
    assert says(one, event) == (
        "Not sent: when the event was fanned out, the endpoint was disabled, or did not want its"
        " type; a replay sends it."
    )


def test_one_that_wanted_other_types_meanwhile_or_was_added_later(hooks, says):
    one = hooks.endpoint(event_types=("owner.login",))
    event = hooks.event()
    fanned(hooks, event)
    assert says(one, event) == "Not sent: it wants owner.login, not corpus.note.changed."
    hooks.webhooks.update("me", one, {"event_types": ("corpus.*",)})
    assert says(one, event).startswith("Not sent: when the event was fanned out")
    assert says(hooks.endpoint(), event).startswith("Not sent: the endpoint was added after the")


def test_under_way_and_behind_each_other(hooks, says):
    one = hooks.endpoint(ordering="strict")
    first, second = hooks.event(), hooks.event()
    fanned(hooks, first)
    fanned(hooks, second)
    assert says(one, first) == "Waits for its turn."
    assert says(one, second).startswith("Waits for an older event")
    lease = hooks.leased(hooks.rows("select min(id) as id from weirkeeper.delivery")[0]["id"])
    until = hooks.webhooks.get("me", one).busy_until
    assert says(one, first) == f"Waits while another request is under way, until {until} at most."
    hooks.deliveries.settle(lease, answered(**FAILED, delay=60.0))
    assert says(one, first).startswith("Tried 1 times; next try at ")
    assert "last: server_error, status 500" in says(one, first)
    hooks.webhooks.pause("me", one)
    assert says(one, second).startswith("Held: the endpoint is paused since ")


def test_held_by_a_pause_or_by_the_rate(hooks, says):
    one = hooks.endpoint(rate=6)
    first, second = hooks.event(), hooks.event()
    fanned(hooks, first)
    fanned(hooks, second)
    delivery = hooks.rows("select min(id) as id from weirkeeper.delivery")[0]["id"]
    hooks.deliveries.settle(hooks.leased(delivery), answered())
    assert says(one, first).endswith("answered with 200.")
    assert says(one, second).endswith("the endpoint takes 6 requests a minute.")
    hooks.conn.execute(
        "update weirkeeper.endpoint set not_before = clock_timestamp() + interval '90 s'"
    )
    assert "the endpoint asked for a pause, or failed at another event" in says(one, second)


def test_a_fault_of_our_own_is_not_laid_to_the_endpoint(hooks, says):
    one = hooks.endpoint()
    event = hooks.event()
    fanned(hooks, event)
    found = hooks.delivery(one)
    hooks.conn.execute(RAN, (found["job_id"], "failed", "retryable"))
    assert f"`weirkeeper jobs explain {found['job_id']}` tells why" in says(one, event)
    hooks.deliveries.settle(hooks.leased(found["id"]), answered(**FAILED, delay=60.0))
    assert says(one, event).startswith("Tried 1 times")


def test_what_is_anothers_is_not_there(hooks, says):
    one, event = hooks.endpoint(), hooks.event(owner="you")
    assert says(one, event).startswith("There is no such event of yours")
    with pytest.raises(NotFound):
        says(one, event, "you")
