"""Replays: counted before they run, run in batches, ended at any time, never twice at once."""

from __future__ import annotations

import pytest

from shared.errors import Conflict, InvalidArguments
from shared.postgres.webhooks import replays as webhook_replays
from shared.postgres.webhooks.replays import PostgresReplays
from shared.postgres.webhooks.retention import tidy_webhooks
from shared.webhooks.body import encode
from tests.support.hooks import Hooks, answered
from tests.support.plans import Watch

ALWAYS = ("2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z")


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


def planned(hooks, endpoint_id, failed_only=False):
    return hooks.webhooks.plan_replay("me", endpoint_id, *ALWAYS, failed_only=failed_only)


def batch(hooks, replay, size):
    return PostgresReplays(hooks.conn).send_batch(int(replay.id), size, encode)


def pending(hooks):
    return hooks.rows(
        "select count(*) as n from weirkeeper.delivery where state = 'pending' and trigger = 'replay'"
    )[0]["n"]


def test_a_plan_counts_and_sends_nothing(hooks):
    for _ in range(3):
        hooks.event()
    hooks.event(owner="you")
    plan = planned(hooks, hooks.endpoint())
    assert (plan.state, plan.total, plan.sent, plan.job_id) == ("planned", 3, 0, None)
    assert pending(hooks) == 0
    assert not batch(hooks, plan, 10)
    assert pending(hooks) == 0


def test_it_runs_in_batches_that_remember_where_they_are(hooks):
    events = [hooks.event() for _ in range(5)]
    plan = hooks.webhooks.start_replay("me", planned(hooks, hooks.endpoint()).id)
    [job] = hooks.rows("select * from weirkeeper.job where kind = 'webhook.replay'")
    assert (plan.state, plan.job_id, job["priority"]) == ("running", str(job["id"]), 4)
    assert batch(hooks, plan, 2)
    assert hooks.webhooks.replay("me", plan.id).sent == 2
    assert batch(hooks, plan, 2)
    assert not batch(hooks, plan, 2)
    done = hooks.webhooks.replay("me", plan.id)
    assert (done.state, done.sent) == ("finished", 5)
    sent = hooks.rows("select event_id::text as e from weirkeeper.delivery order by event_seq")
    assert [row["e"] for row in sent] == events
    jobs = hooks.rows("select priority from weirkeeper.job where kind = 'webhook.deliver'")
    assert {row["priority"] for row in jobs} == {4}


def test_it_sends_failed_ones_alone_where_that_is_asked_for(hooks):
    one = hooks.endpoint()
    for result in ("failed", "delivered", "failed"):
        hooks.fan_out(hooks.event())
        hooks.deliveries.settle(hooks.leased(hooks.delivery(one)["id"]), answered(result=result))
    hooks.event()  # was never sent
    plan = hooks.webhooks.start_replay("me", planned(hooks, one, failed_only=True).id)
    assert plan.total == 2
    batch(hooks, plan, 100)
    assert hooks.webhooks.replay("me", plan.id).sent == 2


def test_what_is_on_its_way_is_not_sent_twice(hooks):
    one = hooks.endpoint()
    hooks.fan_out(hooks.event())
    plan = planned(hooks, one)
    assert plan.total == 0
    batch(hooks, hooks.webhooks.start_replay("me", plan.id), 10)
    assert hooks.rows("select count(*) as n from weirkeeper.delivery")[0]["n"] == 1


def test_a_cancel_holds_from_the_next_batch_on(hooks):
    for _ in range(4):
        hooks.event()
    plan = hooks.webhooks.start_replay("me", planned(hooks, hooks.endpoint()).id)
    batch(hooks, plan, 1)
    ended = hooks.webhooks.cancel_replay("me", plan.id)
    assert (ended.state, ended.sent) == ("cancelled", 1)
    assert not batch(hooks, plan, 1)
    assert pending(hooks) == 1
    assert hooks.webhooks.cancel_replay("me", plan.id).state == "cancelled"


LISTED = "select count(*) as n from weirkeeper.webhook_replay_event"
# Of 500 owners, as a log fills up.
CROWD = (
    "insert into weirkeeper.event (owner_id, type, subject, data)"
    " select 'owner ' || i %% 500, 'corpus.note.changed', 'wiki://' || i, '{}'"
    " from generate_series(1, %s) i"
)


def test_a_plan_reads_the_log_a_stretch_a_statement_and_a_batch_looks_up(hooks, monkeypatch):
    monkeypatch.setattr(webhook_replays, "STRETCH", 16)
    hooks.conn.execute("alter table weirkeeper.event set (autovacuum_enabled = off)")
    hooks.conn.execute(CROWD, (10_000,))
    mine = [hooks.event() for _ in range(3)]
    one, watch = hooks.endpoint(), Watch(hooks.conn)
    with watch.plans() as plans:
        plan = planned(hooks, one)
    reads = [each for each in plans if "v.ctid >=" in each.text]
    assert len(reads) > 5
    # Beside the pages that it reads: the plan's row, and what was listed.
    assert max(each.pages for each in reads) <= 16 + 30
    assert not [said for each in plans for said in each.bad(frozenset({"event"}))]
    plan = hooks.webhooks.start_replay("me", planned(hooks, one).id)
    assert plan.total == len(mine)
    with watch.plans() as plans:
        batch(hooks, plan, 2)
    [looked] = [each for each in plans if "webhook_replay_event e" in each.text]
    assert looked.pages <= 40, "the log was read"
    batch(hooks, plan, 10)
    sent = hooks.rows("select event_id::text as e from weirkeeper.delivery order by job_id")
    assert [row["e"] for row in sent] == mine


def test_what_is_no_longer_to_be_sent_is_left_out_and_the_rest_goes_on(hooks):
    one = hooks.endpoint()
    events = [hooks.event() for _ in range(4)]
    plan = hooks.webhooks.start_replay("me", planned(hooks, one).id)
    hooks.conn.execute("delete from weirkeeper.event where id = %s", (events[0],))
    assert batch(hooks, plan, 1)
    assert batch(hooks, plan, 1)
    hooks.webhooks.update("me", one, {"event_types": ["owner.*"]})
    assert not batch(hooks, plan, 10)
    done = hooks.webhooks.replay("me", plan.id)
    assert (done.state, done.total, done.sent) == ("finished", 4, 1)


def test_lists_go_with_the_end_and_old_replays_with_time(hooks):
    for _ in range(3):
        hooks.event()
    one = hooks.endpoint()
    plans = [planned(hooks, one) for _ in range(3)]
    ended, cancelled = plans[:2]
    batch(hooks, hooks.webhooks.start_replay("me", ended.id), 10)
    hooks.webhooks.cancel_replay("me", cancelled.id)
    running = hooks.webhooks.start_replay("me", planned(hooks, one).id)
    assert hooks.rows(LISTED)[0]["n"] == 3  # of the plan; what is on its way is not planned
    assert tidy_webhooks(hooks.conn, 3600, lambda: False)["replays"] == 0
    hooks.conn.execute("update weirkeeper.webhook_replay set created_at = created_at - interval"
                       " '2 h', ended_at = ended_at - interval '2 h'")  # fmt: skip
    assert tidy_webhooks(hooks.conn, 3600, lambda: False)["replays"] == 3
    assert hooks.webhooks.replay("me", running.id).state == "running"
    assert hooks.rows(LISTED)[0]["n"] == 0


def test_a_plan_runs_once(hooks):
    plan = hooks.webhooks.start_replay("me", planned(hooks, hooks.endpoint()).id)
    with pytest.raises(Conflict, match="running"):
        hooks.webhooks.start_replay("me", plan.id)


@pytest.mark.parametrize(
    "span",
    [
        ("x", ALWAYS[1]),
        (ALWAYS[0], "2100-01-01T00:00:00"),
        (ALWAYS[1], ALWAYS[0]),
        ("0001-01-01T00:00:00+14:00", ALWAYS[1]),
        (ALWAYS[0], "9999-12-31T23:59:59-14:00"),
    ],
)
def test_a_span_that_is_none_is_refused(hooks, span):
    with pytest.raises(InvalidArguments, match=r"since|until"):
        hooks.webhooks.plan_replay("me", hooks.endpoint(), *span, failed_only=False)
