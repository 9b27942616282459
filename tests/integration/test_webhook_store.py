"""Endpoints, secrets and the log: what an owner may do, and never with what is another's."""

from __future__ import annotations

import pytest

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.webhooks.endpoint import Draft
from shared.webhooks.sealing import Sealer
from tests.support.hooks import SECRET, Hooks, answered

NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


def secrets(hooks, endpoint_id):
    sealed = hooks.rows(
        "select sealed from weirkeeper.endpoint_secret where endpoint_id = %s order by no desc",
        endpoint_id,
    )
    return [Sealer([SECRET]).unseal(bytes(row["sealed"]), "me") for row in sealed]


def test_a_new_endpoint_is_as_it_was_asked_for_and_shows_its_secret_once(hooks):
    created = hooks.webhooks.create(
        "me",
        Draft(
            url="https://hooks.example.org/in?x=1",
            event_types=("corpus.note.changed", "corpus.*"),
            description="ours",
            headers={"X-Team": "blue"},
            rate=60,
            schedule=(5, 10),
            ordering="strict",
        ),
    )
    assert created.secret.startswith("whsec_")
    assert secrets(hooks, created.id) == [created.secret]
    [found] = hooks.webhooks.endpoints("me")
    assert found == hooks.webhooks.get("me", created.id)
    assert (found.url, found.description, found.headers) == (
        "https://hooks.example.org/in?x=1",
        "ours",
        {"X-Team": "***"},
    )
    assert (found.rate, found.schedule, found.ordering, found.enabled) == (
        60,
        [5, 10],
        "strict",
        True,
    )
    stored = hooks.rows("select to_jsonb(e)::text as t from weirkeeper.endpoint e")[0]["t"]
    assert created.secret not in stored
    assert "blue" not in stored


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("url", "https://10.0.0.1/", "ip"),
        ("url", "https://localhost/", "single_label"),
        ("url", "ftp://hooks.example.org/", "scheme"),
        ("event_types", (), "1 to 100"),
        ("event_types", ("no.such.*",), "no.such"),
        ("event_types", ("A",), "dotted words"),
        ("headers", {"Webhook-Id": "1"}, "Webhook-Id"),
        ("headers", {"X": "a\nb"}, "X"),
        ("headers", {"X": "***"}, "not shown"),
        ("format", "xml", "cloudevents"),
        ("signature", "v9", "v1a"),
        ("ordering", "fifo", "strict"),
        ("rate", 0, "6000"),
        ("rate", True, "6000"),
        ("schedule", (0,), "schedule"),
        ("description", "x" * 501, "500"),
    ],
)
def test_what_an_endpoint_cannot_have_is_refused_with_the_rule(hooks, field, value, word):
    given = {"url": "https://hooks.example.org/", "event_types": ("corpus.*",), field: value}
    with pytest.raises(InvalidArguments, match=word):
        hooks.webhooks.create("me", Draft(**given))
    assert hooks.webhooks.endpoints("me") == []


def test_an_internal_type_cannot_be_asked_for(hooks):
    hooks.conn.execute("update weirkeeper.event_type set exposure = 'internal'")
    with pytest.raises(InvalidArguments, match="event_types"):
        hooks.endpoint()


def test_an_update_changes_what_is_given_alone(hooks):
    one = hooks.endpoint(rate=5, description="before")
    changed = hooks.webhooks.update("me", one, {"description": "after", "rate": None})
    assert (changed.description, changed.rate, changed.event_types) == ("after", None, ["corpus.*"])
    with pytest.raises(InvalidArguments, match="ip"):
        hooks.webhooks.update("me", one, {"url": "https://169.254.169.254/"})


def test_a_rotation_keeps_the_old_secret_for_its_overlap_and_at_most_five(hooks):
    one = hooks.endpoint()
    [first] = secrets(hooks, one)
    second = hooks.webhooks.rotate_secret("me", one, 60).secret
    assert secrets(hooks, one) == [second, first]
    hooks.fan_out(hooks.event())
    lease = hooks.leased(hooks.delivery(one)["id"])
    assert len(lease.sealed) == 2
    for _ in range(6):
        hooks.webhooks.rotate_secret("me", one, 60)
    hooks.deliveries.release(lease)
    assert len(hooks.leased(hooks.delivery(one)["id"]).sealed) == 5
    last = hooks.webhooks.rotate_secret("me", one, 0).secret
    live = hooks.rows(
        "select no from weirkeeper.endpoint_secret"
        " where expires_at is null or expires_at > clock_timestamp()"
    )
    assert len(live) == 1
    assert secrets(hooks, one)[0] == last


def test_an_owner_has_a_bounded_number(hooks, monkeypatch):
    monkeypatch.setattr("shared.postgres.webhooks.endpoints.MAX_ENDPOINTS", 2)
    hooks.endpoint()
    hooks.endpoint()
    with pytest.raises(Conflict, match="at most 2"):
        hooks.endpoint()
    hooks.endpoint(owner="you")


@pytest.mark.parametrize("given", ["99999999999999999999", "-1", "", "a", "٣"])
def test_a_page_begins_at_a_sequence_number_and_at_nothing_else(hooks, given):
    mine = hooks.endpoint()
    with pytest.raises(InvalidArguments, match="after: expected a sequence number"):
        hooks.webhooks.missed("me", mine, given)
    with pytest.raises(InvalidArguments, match="before: expected a sequence number"):
        hooks.webhooks.deliveries("me", mine, before=given)


def test_an_event_is_put_on_its_way_once_to_each_endpoint_that_wants_it(hooks):
    mine, other = hooks.endpoint(), hooks.endpoint(event_types=("webhook.test",))
    hooks.endpoint(owner="you")
    event = hooks.event()
    assert hooks.fan_out(event) == 1
    assert hooks.fan_out(event) == 0
    [only] = hooks.webhooks.deliveries("me", mine)
    assert (only.event_id, only.state, only.trigger) == (event, "pending", "auto")
    assert hooks.webhooks.deliveries("me", other) == []
    [job] = hooks.rows("select * from weirkeeper.job where kind = 'webhook.deliver'")
    assert str(job["id"]) == only.job_id
    assert (job["owner_id"], job["concurrency_key"]) == ("me", f"webhook:{mine}")


def test_a_long_number_leaves_as_it_was_recorded(hooks):
    one = hooks.endpoint()
    hooks.fan_out(hooks.event(data={"n": 12345678901234567890123}))
    assert b'"data":{"n":12345678901234567890123}' in bytes(hooks.delivery(one)["body"])


def test_deleting_an_endpoint_cancels_what_is_on_its_way(hooks):
    one = hooks.endpoint()
    hooks.fan_out(hooks.event())
    job = hooks.delivery(one)["job_id"]
    hooks.webhooks.delete("me", one)
    assert hooks.webhooks.endpoints("me") == []
    assert hooks.rows("select 1 from weirkeeper.delivery") == []
    [ended] = hooks.rows("select state from weirkeeper.attempt where job_id = %s", job)
    assert ended["state"] == "cancelled"


def test_a_paused_endpoint_holds_what_comes_and_resuming_lets_it_go(hooks):
    one = hooks.endpoint()
    hooks.webhooks.pause("me", one)
    assert hooks.opens(one) == "infinity"
    assert hooks.fan_out(hooks.event()) == 1
    assert hooks.deliveries.lease(hooks.delivery(one)["id"], 20).why == "disabled"
    hooks.webhooks.resume("me", one)
    assert hooks.opens(one) != "infinity"
    hooks.leased(hooks.delivery(one)["id"])


def test_a_test_reaches_the_one_endpoint_that_it_names_and_not_too_often(hooks):
    one, _ = hooks.endpoint(), hooks.endpoint(event_types=("*",))
    event = hooks.webhooks.send_test("me", one)
    assert hooks.fan_out(event) == 1
    assert hooks.delivery(one)["trigger"] == "test"
    with pytest.raises(Conflict, match="10 s"):
        hooks.webhooks.send_test("me", one)


def test_a_redelivery_begins_a_new_round_of_the_same_delivery(hooks):
    one = hooks.endpoint()
    event = hooks.event()
    hooks.fan_out(event)
    before = hooks.delivery(one)
    hooks.deliveries.settle(hooks.leased(before["id"]), answered(result="failed", code="gone"))
    assert hooks.delivery(one)["state"] == "failed"
    assert hooks.webhooks.redeliver("me", event_id=event) == [str(before["id"])]
    again = hooks.delivery(one)
    assert (again["state"], again["attempts"], again["tries"]) == ("pending", 0, 1)
    assert bytes(again["body"]) == bytes(before["body"])
    assert again["job_id"] != before["job_id"]
    assert hooks.webhooks.redeliver("me", event_id=event) == []  # it is on its way
    with pytest.raises(NotFound, match="event: expected the id of one that was sent"):
        hooks.webhooks.redeliver("me", event_id=NOBODYS)
    with pytest.raises(NotFound, match="delivery: expected the id of one of yours"):
        hooks.webhooks.attempts("me", "999999")


def test_a_receiver_reads_what_it_missed_in_order(hooks):
    one = hooks.endpoint()
    events = [hooks.event() for _ in range(5)]
    for event in events:
        hooks.fan_out(event)
    first = hooks.webhooks.missed("me", one, "0", 2)
    rest = hooks.webhooks.missed("me", one, first[-1].seq)
    assert [row.event_id for row in first + rest] == events
    newest = hooks.webhooks.deliveries("me", one, limit=2)
    older = hooks.webhooks.deliveries("me", one, before=newest[-1].event_seq)
    assert [row.event_id for row in newest + older] == events[::-1]
