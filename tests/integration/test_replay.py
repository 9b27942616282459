"""Replays: a plan with a number, then exactly those events, once, whatever is killed meanwhile."""

from __future__ import annotations

import psycopg
import pytest

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.ops.desk import Desk as OpsDesk
from shared.ops.table import call
from shared.postgres.driver.connect import connect
from shared.postgres.events import replays
from shared.postgres.events.log import PostgresEventLog
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.inspection.inspector import PostgresInspector
from tests.support.outbox import Desk
from tests.support.waiting import until

EVER = {"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"}


@pytest.fixture
def desk(database_url, tmp_path):
    opened = Desk(database_url, tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def conn(desk):
    with connect(desk.url, "replays") as opened:
        yield opened


@pytest.fixture
def ops(conn):
    return OpsDesk(
        owner_id="me", notes=None, search=None, webhooks=None, waits=None, inspector=PostgresInspector(conn),
        recorder=PostgresRecorder(conn), events=PostgresEventLog(conn),
    )  # fmt: skip


def relayed(desk, count, kind="order.paid", prefix="n/"):
    """Events that were fanned out, and whose jobs are gone from the line."""
    desk.record_many(kind, count, prefix)
    while desk.relay.turn().full:
        pass
    desk.conn.execute("delete from weirkeeper.ready")


def begun(ops, subscriber, **more):
    arguments = {"subscriber": subscriber, **EVER, **more}
    plan = call(ops, "events.replay", arguments)
    return call(ops, "events.replay", {**arguments, "confirm": plan.events}).replay


def replayed(desk, subscriber):
    """Events whose job of a replay waits, in the order of claims; each is a new one."""
    return desk.rows(
        "select j.args, j.priority, j.tags, j.id, j.owner_id, j.trace from weirkeeper.job j"
        " join weirkeeper.ready r on r.job_id = j.id where j.kind = %s and j.tags @> '{replay}'"
        " order by r.priority, r.seq",
        subscriber,
    )


def never():
    return False


def nobody(_):
    return None


def test_a_plan_tells_how_many_and_does_nothing(desk, ops):
    relayed(desk, 5)
    relayed(desk, 3, "order.line.added")
    relayed(desk, 2, "quiet")
    desk.record("order.paid")  # the relay's affair still
    for subscriber, glob, expected in (
        ("ship", "*", 5),
        ("audit", "*", 8),
        ("audit", "order.line.*", 3),
        ("audit", "quiet", 0),
    ):
        plan = call(ops, "events.replay", {"subscriber": subscriber, "type": glob, **EVER})
        assert (plan.events, plan.replay) == (expected, None), (subscriber, glob)
    assert desk.count("replay") == desk.count("replay_event") == 0
    with pytest.raises(NotFound, match="subscriber: expected a subscription"):
        call(ops, "events.replay", {"subscriber": "nobody", **EVER})
    with pytest.raises(NotFound, match="subscriber: expected a subscription"):
        call(ops, "events.replay", {"subscriber": "nobody", **EVER, "confirm": 0})


def test_moments_bound_a_replay(desk, ops):
    relayed(desk, 9)
    desk.conn.execute("update weirkeeper.event set occurred_at = '2026-01-01Z' where seq % 3 = 0")
    desk.conn.execute("update weirkeeper.event set occurred_at = '2026-01-02Z' where seq % 3 = 1")
    day = {"since": "2026-01-01T00:00:00Z", "until": "2026-01-02T00:00:00Z"}
    assert call(ops, "events.replay", {"subscriber": "ship", **day}).events == 3
    with pytest.raises(InvalidArguments):
        call(ops, "events.replay", {"subscriber": "ship", "since": "x", "until": "y"})


def test_what_is_confirmed_must_be_what_was_planned(desk, ops):
    relayed(desk, 5)
    plan = call(ops, "events.replay", {"subscriber": "ship", **EVER})
    relayed(desk, 1)
    again = {"subscriber": "ship", **EVER, "confirm": plan.events}
    with pytest.raises(Conflict, match="expected the 5 events that were planned; got 6"):
        call(ops, "events.replay", again)
    assert desk.count("replay") == desk.count("replay_event") == 0
    assert desk.rows("select 1 from weirkeeper.job where kind = 'weirkeeper.replay'") == []


def test_each_event_is_delivered_once_more_at_low_priority_in_order(desk, ops, conn):
    relayed(desk, 450)
    before = {r["event_id"]: r["jobs"] for r in desk.rows("select * from weirkeeper.event_fanout")}
    replay = begun(ops, "ship")
    assert (replay.state, replay.events, replay.done, replay.jobs) == ("running", 450, 0, 0)
    job = PostgresInspector(conn).get(replay.job_id)
    assert (job.kind, job.queue, job.args) == (
        "weirkeeper.replay", "maintenance", {"replay_id": replay.id})  # fmt: skip
    told = []
    assert replays.deliver(conn, replay.id, never, told.append)
    assert told == [250, 50, 0]
    order = [r["id"] for r in desk.rows("select id::text from weirkeeper.event order by seq")]
    jobs = replayed(desk, "ship")
    assert [j["args"]["event_id"] for j in jobs] == order
    assert {(j["priority"], tuple(j["tags"])) for j in jobs} == {
        (4, ("replay", f"replay:{replay.id}"))
    }
    after = {r["event_id"]: r["jobs"] for r in desk.rows("select * from weirkeeper.event_fanout")}
    for event, named in after.items():
        assert {k: v for k, v in named.items() if k != "ship"} == {
            k: v for k, v in before[event].items() if k != "ship"
        }
        assert named["ship"] > before[event]["ship"], "the fan-out names the newest job"
    ended = call(ops, "events.replay_status", {"id": replay.id})
    assert (ended.state, ended.done, ended.jobs) == ("finished", 450, 450)
    assert replays.deliver(conn, replay.id, never, nobody), "again is nothing"
    assert len(replayed(desk, "ship")) == 450


def test_a_live_event_overtakes_a_replay(desk, ops, conn):
    relayed(desk, 50)
    replay = begun(ops, "ship")
    replays.deliver(conn, replay.id, never, nobody)
    live = desk.record("order.paid", "live")
    desk.relay.turn()
    first = desk.rows(
        "select j.event_id::text from weirkeeper.ready r join weirkeeper.job j on j.id = r.job_id"
        " where r.kind = 'ship' order by r.priority, r.seq limit 1"
    )
    assert first == [{"event_id": live}]


def test_a_coalescing_subscriber_gets_the_latest_of_each_subject(desk, ops, conn):
    desk.record_many("order.paid", 10)
    last = [desk.record("order.line.added", f"n/{n}") for n in range(1, 11)]
    while desk.relay.turn().full:
        pass
    desk.conn.execute("delete from weirkeeper.ready")
    replay = begun(ops, "total")
    replays.deliver(conn, replay.id, never, nobody)
    assert [j["args"]["event_id"] for j in replayed(desk, "total")] == last
    status = call(ops, "events.replay_status", {"id": replay.id})
    assert (status.done, status.jobs) == (20, 10)
    assert (
        desk.rows("select count(distinct jobs->>'total')::int as n from weirkeeper.event_fanout")[
            0
        ]["n"]
        == 10
    )


def test_a_subscription_that_came_later_gets_what_happened_before(desk, ops, conn):
    relayed(desk, 3, "quiet")
    desk.conn.execute(
        "insert into weirkeeper.kind (name, queue, max_attempts, timeout_ms, awaited)"
        " values ('late', 'index', 3, 1000, false)"
    )
    desk.conn.execute(
        "insert into weirkeeper.route (type, subscription, coalesce) values ('quiet', 'late', false)"
    )
    replay = begun(ops, "late")
    replays.deliver(conn, replay.id, never, nobody)
    assert len(replayed(desk, "late")) == 3
    named = desk.rows(
        "select distinct jsonb_object_keys(jobs) as name from weirkeeper.event_fanout"
    )
    assert named == [{"name": "late"}]


def test_it_goes_on_where_it_was_killed(desk, ops, conn):
    relayed(desk, 1000)
    replay = begun(ops, "ship")
    for batch in range(
        1, 5
    ):  # a session that ends in the middle of a batch, then one that does one
        with psycopg.connect(desk.url) as killed:
            killed.execute("select weirkeeper.replay_batch(%s, 200)", [int(replay.id)])
            killed.rollback()
        stops = iter([False, True])
        assert replays.deliver(conn, replay.id, lambda it=stops: next(it), nobody) is False
        assert call(ops, "events.replay_status", {"id": replay.id}).done == 200 * batch
    assert replays.deliver(conn, replay.id, never, nobody)
    delivered = [j["args"]["event_id"] for j in replayed(desk, "ship")]
    assert len(delivered) == len(set(delivered)) == 1000


def test_a_cancel_ends_it_and_what_has_not_begun(desk, ops, conn):
    relayed(desk, 500)
    replay = begun(ops, "ship")
    stops = iter([False, True])
    replays.deliver(conn, replay.id, lambda: next(stops), nobody)
    running = desk.rows("select max(job_id) as id from weirkeeper.ready where kind = 'ship'")[0][
        "id"
    ]
    desk.conn.execute("delete from weirkeeper.ready where job_id = %s", [running])
    ended = call(ops, "events.replay_cancel", {"id": replay.id})
    assert (ended.replay.state, ended.replay.done, ended.jobs) == ("cancelled", 200, 199)
    assert replayed(desk, "ship") == []
    assert desk.count("replay_event") == 0
    assert replays.deliver(conn, replay.id, never, nobody), "nothing is left"
    assert replayed(desk, "ship") == []
    assert call(ops, "events.replay_cancel", {"id": replay.id}).jobs == 0, "again is nothing"
    with pytest.raises(NotFound, match="replay: expected the id"):
        call(ops, "events.replay_cancel", {"id": "999"})
    with pytest.raises(NotFound, match="replay: expected the id"):
        call(ops, "events.replay_status", {"id": "x"})


def test_a_finished_replay_is_not_cancelled(desk, ops, conn):
    relayed(desk, 2)
    replay = begun(ops, "ship")
    replays.deliver(conn, replay.id, never, nobody)
    ended = call(ops, "events.replay_cancel", {"id": replay.id})
    assert (ended.replay.state, ended.jobs) == ("finished", 0)
    assert len(replayed(desk, "ship")) == 2


def test_an_event_that_was_pruned_meanwhile_is_passed_over(desk, ops, conn):
    relayed(desk, 3)
    replay = begun(ops, "ship")
    gone = desk.rows("select id from weirkeeper.event order by seq limit 1")[0]["id"]
    for table, column in (("event", "id"), ("event_fanout", "event_id")):
        desk.conn.execute(f"delete from weirkeeper.{table} where {column} = %s", [gone])
    replays.deliver(conn, replay.id, never, nobody)
    status = call(ops, "events.replay_status", {"id": replay.id})
    assert (status.state, status.done, status.jobs) == ("finished", 3, 2)


def test_two_runs_of_one_replay_deliver_nothing_twice(desk, ops, conn):
    relayed(desk, 400)
    replay = begun(ops, "ship")
    with psycopg.connect(desk.url) as first, connect(desk.url, "second") as second:
        first.execute("select weirkeeper.replay_batch(%s, 200)", [int(replay.id)])
        second.execute("set lock_timeout = '50ms'")
        with pytest.raises(Exception, match="lock timeout"):
            replays.deliver(second, replay.id, never, nobody)
        first.commit()
        replays.deliver(second, replay.id, never, nobody)
    assert len({j["args"]["event_id"] for j in replayed(desk, "ship")}) == 400
    assert len(replayed(desk, "ship")) == 400


def test_the_last_replays_are_listed(desk, ops):
    relayed(desk, 2)
    first, second = begun(ops, "ship"), begun(ops, "audit")
    found = call(ops, "events.replays", {})
    assert [r.id for r in found] == [second.id, first.id]
    assert [r.id for r in call(ops, "events.replays", {"limit": 1})] == [second.id]


def test_a_replayed_event_stays_until_its_job_has_ended(desk, ops, conn):
    relayed(desk, 3)
    replay = begun(ops, "ship")
    replays.deliver(conn, replay.id, never, nobody)
    prune = (
        "select * from weirkeeper.prune_events('-infinity',"
        " '00000000-0000-0000-0000-000000000000', 500, 'infinity')"
    )
    desk.rows(prune)
    assert desk.count("event") == 3
    desk.conn.execute("select weirkeeper.cancel_jobs(array(select job_id from weirkeeper.ready))")
    until(lambda: desk.rows(prune) and desk.count("event") == 0, 5, "the events are pruned")
