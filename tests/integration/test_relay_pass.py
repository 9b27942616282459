"""One pass: each committed event becomes exactly one job per matching subscription."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.support.outbox import Desk


@pytest.fixture
def desk(database_url, tmp_path):
    opened = Desk(database_url, tmp_path)
    yield opened
    opened.close()


def test_one_job_for_each_match_with_the_kinds_limits(desk):
    event = desk.record("order.paid", "order/17", "me")
    done = desk.relay.turn()
    assert (done.rows, done.jobs, done.full) == (1, 3, False)
    assert set(desk.fanout(event)) == {"ship", "audit", "total"}
    (total,) = desk.jobs("total")
    assert total["id"] == desk.fanout(event)["total"]
    assert total["args"] == {"event_id": event, "subject": "order/17"}
    assert (total["queue"], total["max_attempts"], total["timeout_ms"], total["awaited"]) == (
        "index",
        3,
        7500,
        True,
    )
    assert (str(total["event_id"]), total["owner_id"], total["priority"]) == (event, "me", 2)
    assert desk.count("event_pending") == 0


def test_the_trace_is_carried_from_event_to_job(desk):
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    desk.conn.execute(
        "insert into weirkeeper.event (type, subject, trace) values ('order.paid', '', %s)", [trace]
    )
    desk.relay.turn()
    assert [job["trace"] for job in desk.jobs("ship")] == [trace]


def test_an_event_that_nobody_wants_is_marked_with_an_empty_fan_out(desk):
    event = desk.record("quiet")
    done = desk.relay.turn()
    assert (done.rows, done.jobs) == (1, 0)
    assert desk.fanout(event) == {}
    assert desk.count("event_pending") == 0


def test_only_a_coalescing_subscriber_merges_and_every_merged_event_names_its_job(desk):
    events = [desk.record("order.line.added", "order/1") for _ in range(5)]
    desk.relay.turn()
    assert [job["args"]["event_id"] for job in desk.jobs("audit")] == events
    (total,) = desk.jobs("total")
    assert total["args"]["event_id"] == events[-1], "the latest wins"
    assert {desk.fanout(event)["total"] for event in events} == {total["id"]}
    assert len({desk.fanout(event)["audit"] for event in events}) == 5


def test_coalescing_is_per_subject_per_owner_and_per_pass(desk):
    desk.record("order.paid", "order/1")
    desk.record("order.paid", "order/2")
    desk.record("order.paid", "order/1", "me")
    desk.record("order.line.added", "order/1", "me")
    desk.relay.turn()
    assert [(j["args"]["subject"], j["owner_id"]) for j in desk.jobs("total")] == [
        ("order/1", None),
        ("order/2", None),
        ("order/1", "me"),
    ]
    desk.record("order.paid", "order/2")
    desk.relay.turn()
    assert len(desk.jobs("total")) == 4


def test_jobs_wait_in_the_order_of_their_events(desk):
    events = [desk.record("order.paid", f"order/{n % 3}") for n in range(30)]
    desk.relay.turn()
    assert [job["args"]["event_id"] for job in desk.jobs("ship")] == events


def test_250_rows_are_a_pass_of_200_and_one_of_50(desk):
    desk.record_many("order.paid", 250)
    first, second, third = (desk.relay.turn() for _ in range(3))
    assert [(p.rows, p.full) for p in (first, second, third)] == [
        (200, True),
        (50, False),
        (0, False),
    ]
    assert (first.jobs, second.jobs) == (600, 150)


def test_a_late_commit_of_an_earlier_seq_is_fanned_out_at_once(desk):
    with psycopg.connect(desk.url) as late:
        row = late.execute("select weirkeeper.record_event('quiet')").fetchone()
        desk.record_many("quiet", 450)
        assert [desk.relay.turn().rows for _ in range(3)] == [200, 200, 50]
        # Whatever floor or hint these passes have left, it must lie below the open one.
        for _ in range(3):
            desk.record("quiet")
            assert desk.relay.turn().rows == 1
        late.commit()
    assert desk.relay.turn().rows == 1
    assert desk.fanout(str(row[0])) == {}


def test_a_lone_writer_that_commits_late_is_never_passed_by_the_floor(desk):
    with psycopg.connect(desk.url) as late:
        row = late.execute("select weirkeeper.record_event('quiet')").fetchone()
        for _ in range(10):
            assert desk.relay.turn().rows == 0
        late.commit()
    assert desk.relay.turn().rows == 1
    assert desk.fanout(str(row[0])) == {}


def test_a_late_commit_does_not_wait_for_the_end_of_a_load(desk):
    with psycopg.connect(desk.url) as late:
        row = late.execute("select weirkeeper.record_event('quiet')").fetchone()
        desk.record_many("quiet", 400)
        assert desk.relay.turn().full
        late.commit()
    desk.outbox._swept_at -= 1  # the interval between sweeps has passed
    desk.record_many("quiet", 400)
    assert desk.relay.turn().full, "there is more than a pass to do"
    assert desk.fanout(str(row[0])) == {}


def test_what_rolls_back_leaves_nothing_and_stops_nothing(desk):
    with psycopg.connect(desk.url) as conn:
        conn.execute("select weirkeeper.record_event('order.paid')")
        conn.rollback()
    assert desk.relay.turn().rows == 0
    assert desk.count("event") == 0
    desk.record("quiet")
    assert desk.relay.turn().rows == 1


def test_rows_that_an_aborted_pass_had_claimed_come_back(desk):
    desk.record_many("quiet", 10)
    with psycopg.connect(desk.url) as other:
        other.execute("delete from weirkeeper.event_pending where seq % 2 = 0")
        assert desk.relay.turn().rows == 5, "what another holds is skipped, not waited for"
        for _ in range(3):
            desk.record("quiet")
            desk.relay.turn()
        other.rollback()
    assert desk.relay.turn().rows == 5
    assert desk.count("event_fanout") == 13


def test_a_floor_never_rises_over_rows_that_another_may_give_back(desk):
    desk.record_many("quiet", 1000)

    def sweep():
        desk.outbox._swept_at -= 1
        return desk.relay.turn().rows

    assert [sweep(), sweep()] == [200, 200]  # the first reads the last seq, the second notes it
    with psycopg.connect(desk.url) as other:
        other.execute("delete from weirkeeper.event_pending")
        assert sweep() == 0  # whoever could have added a row below the note has ended
        other.rollback()
    assert sum(sweep() for _ in range(3)) == 600


def test_four_relays_fan_500_events_out_exactly_once(desk):
    desk.record_many("order.paid", 500)
    relays = [desk.another() for _ in range(4)]
    rows = [0] * 4

    def work(n: int) -> None:
        while sum(rows) < 500:
            rows[n] += relays[n].turn().rows

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    for relay in relays:
        relay._outbox._conn.close()
    assert sum(rows) == 500
    assert desk.count("event_fanout") == 500
    found = desk.rows(
        "select count(*)::integer as jobs, count(distinct (event_id, kind))::integer as pairs"
        " from weirkeeper.job"
    )
    assert found == [{"jobs": 1500, "pairs": 1500}]


def test_a_row_put_in_line_twice_does_nothing_twice(desk):
    event = desk.record("order.paid")
    desk.conn.execute("insert into weirkeeper.event_pending (event_id) values (%s)", [event])
    desk.relay.turn()
    desk.conn.execute("insert into weirkeeper.event_pending (event_id) values (%s)", [event])
    desk.relay.turn()
    assert len(desk.jobs("ship")) == 1
    assert desk.count("event_pending") == desk.count("event_failure") == 0


def test_announcements_come_after_the_commit_100_ids_each(desk):
    with psycopg.connect(desk.url, autocommit=True) as waiting:
        waiting.execute("listen weirkeeper_fanout")
        desk.record_many("quiet", 217, prefix="x" * 2040)
        assert [desk.relay.turn().rows for _ in range(2)] == [200, 17]
        payloads = [notice.payload for notice in waiting.notifies(timeout=5, stop_after=3)]
    ids = [event for payload in payloads for event in payload.split(",")]
    assert [len(payload.split(",")) for payload in payloads] == [100, 100, 17]
    assert max(len(payload.encode()) for payload in payloads) < 8000
    known = desk.rows("select e.id::text as id from weirkeeper.event e order by e.seq")
    assert ids == [row["id"] for row in known]


def test_a_pass_is_counted(desk):
    desk.record_many("order.paid", 250)
    for _ in range(3):
        desk.relay.turn()
    of = desk.instruments
    assert [of.relay_passes_total.labels(r).get() for r in ("full", "short", "empty")] == [1, 1, 1]
    assert of.relay_jobs_enqueued_total.labels().get() == 750


def test_a_pass_wakes_the_queues_that_it_fed_and_no_other(desk):
    numbers = {r["name"]: r["no"] for r in desk.rows("select name, no from weirkeeper.queue")}
    with psycopg.connect(desk.url, autocommit=True) as sleeper:
        for name in ("index", "maintenance", "webhook"):
            sleeper.execute(f"listen weirkeeper_queue_{numbers[name]}")
            sleeper.execute("select pg_advisory_lock(1464160587, %s)", [numbers[name] * 2])
        desk.record("order.line.added")
        desk.relay.turn()
        heard = {notice.channel for notice in sleeper.notifies(timeout=5, stop_after=2)}
        heard |= {notice.channel for notice in sleeper.notifies(timeout=0.1)}
    assert heard == {f"weirkeeper_queue_{numbers[name]}" for name in ("index", "maintenance")}
