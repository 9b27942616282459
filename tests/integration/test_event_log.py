"""The log of events: found, told with what became of each, requeued by hand."""

from __future__ import annotations

import json

import pytest

from shared.errors import Conflict, InvalidArguments, NotFound
from shared.events.log import Delivery, Filter
from shared.ops.desk import Desk as OpsDesk
from shared.ops.table import call
from shared.postgres.driver.connect import connect
from shared.postgres.driver.statements import statement
from shared.postgres.events import pages as event_pages
from shared.postgres.events.log import PostgresEventLog
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.inspection.verify import violations
from tests.support.outbox import Desk


@pytest.fixture
def desk(database_url, tmp_path):
    opened = Desk(database_url, tmp_path)
    kept = (["order.paid", "order.line.added", "quiet", "corpus.note.changed"],)
    opened.conn.execute("delete from weirkeeper.route where type <> all (%s)", kept)
    opened.conn.execute("delete from weirkeeper.event_type where name <> all (%s)", kept)
    yield opened
    opened.close()


@pytest.fixture
def log(desk):
    with connect(desk.url, "log") as conn:
        yield PostgresEventLog(conn)


class Places:
    """Endpoints that take one type."""

    def wanting(self, owner_id, types):
        assert owner_id == "me"
        return {name: ["17"] for name in types if name == "order.paid"}


@pytest.fixture
def ops(desk):
    """The desk of an operation's caller."""
    with connect(desk.url, "ops") as conn:
        yield OpsDesk(
            owner_id="me", notes=None, search=None, webhooks=None, waits=None, inspector=PostgresInspector(conn),
            recorder=PostgresRecorder(conn), events=PostgresEventLog(conn), endpoints=Places(),
        )  # fmt: skip


def ids(page):
    return [event.id for event in page]


def poison(desk, subject="bad"):
    """One event that the relay gave up."""
    desk.refuse(subject)
    event = desk.record("order.paid", subject)
    for _ in range(6):
        desk.relay.turn()
    desk.allow()
    return event


def test_a_list_begins_with_what_waits_and_goes_on_with_the_newest(desk, log):
    fanned = []
    for n in range(3):
        fanned.append(desk.record("quiet", str(n)))
        desk.relay.turn()
    bad = poison(desk)
    waiting = [desk.record("order.paid", str(n), "me") for n in range(2)]
    found = log.list(Filter())
    assert ids(found) == [*reversed(waiting), bad, *reversed(fanned)]
    assert [e.state for e in found] == ["pending"] * 2 + ["poisoned"] + ["fanned_out"] * 3
    assert [e.failures for e in found] == [0, 0, 5, 0, 0, 0]
    assert all(e.data is None and e.deliveries == () for e in found)


def test_events_of_one_pass_keep_their_order(desk, ops, log):
    desk.record_many("quiet", 60)
    desk.record("order.paid", "order/1")
    last = desk.record("order.line.added", "order/1")
    assert desk.relay.turn().rows == 62
    found = log.list(Filter(), limit=500)
    assert found[0].id == last
    assert [e.subject for e in found[2:]] == [f"n/{n}" for n in range(60, 0, -1)]
    newest = call(ops, "events.dry_run", {"limit": 2})
    assert {row.type: row.events for row in newest} == {"order.paid": 1, "order.line.added": 1}


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_follow_each_other_without_a_gap(desk, log, limit, monkeypatch):
    monkeypatch.setattr(event_pages, "WINDOW", 2)
    for n in range(5):
        desk.record("quiet", str(n))
        desk.relay.turn()
    poison(desk, "bad one")
    desk.conn.execute("drop function refuse")
    poison(desk, "bad two")
    for n in range(3):
        desk.record("order.paid", str(n))
    whole = ids(log.list(Filter(), limit=500))
    assert len(whole) == 10
    found, before = [], None
    while page := log.list(Filter(), limit=limit, before=before):
        assert len(page) <= limit
        found += ids(page)
        before = page[-1].id
    assert found == whole


def test_filters_narrow_the_list(desk, log, monkeypatch):
    monkeypatch.setattr(event_pages, "WINDOW", 3)
    mine = desk.record("order.line.added", "order/1", "me")
    desk.record_many("quiet", 20)
    desk.relay.turn()
    bad = poison(desk)
    waiting = desk.record("order.paid", "order/1")
    assert ids(log.list(Filter(subject="order/1"))) == [waiting, mine]
    assert ids(log.list(Filter(owner_id="me"))) == [mine]
    assert ids(log.list(Filter(types=("order.paid",)))) == [waiting, bad]
    assert ids(log.list(Filter(state="pending"))) == [waiting]
    assert ids(log.list(Filter(state="poisoned"))) == [bad]
    assert ids(log.list(Filter(state="failing"))) == []
    assert len(log.list(Filter(state="fanned_out"))) == 21
    assert log.list(Filter(types=())) == []
    with pytest.raises(InvalidArguments, match="state: expected one of pending"):
        log.list(Filter(state="lost"))
    for nobody in ("17", "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(InvalidArguments, match="before: expected the id of an event"):
            log.list(Filter(), before=nobody)


def test_one_event_tells_everything(desk, log):
    event = desk.conn.execute(
        "select weirkeeper.record_event('order.paid', 'me', 'order/1', '{\"n\": [1]}', '00-1')::text"
        " as id"
    ).fetchone()["id"]
    assert log.get(event).state == "pending"
    desk.relay.turn()
    found = log.get(event.upper())
    jobs = desk.fanout(event)
    assert found.data == {"n": [1]}
    assert (found.state, found.owner_id, found.trace) == ("fanned_out", "me", "00-1")
    assert found.deliveries == tuple(
        Delivery(name, str(jobs[name]), "pending") for name in ("audit", "ship", "total")
    )
    desk.conn.execute("select weirkeeper.cancel_jobs(array[%s])", [jobs["audit"]])
    desk.conn.execute("delete from weirkeeper.ready where job_id = %s", [jobs["ship"]])
    desk.conn.execute("delete from weirkeeper.job where id = %s", [jobs["ship"]])
    assert [d.state for d in log.get(event).deliveries] == ["cancelled", "gone", "pending"]
    for nobody in ("17", "00000000-0000-0000-0000-000000000000", ""):
        with pytest.raises(NotFound, match="event: expected the id"):
            log.get(nobody)


def test_a_poisoned_event_tells_why_and_is_requeued(desk, log):
    bad = poison(desk)
    found = log.get(bad)
    assert (found.state, found.failures, found.next_try_at) == ("poisoned", 5, None)
    assert found.last_error.startswith("no job for bad")
    desk.relay.turn()
    assert log.get(bad).state == "poisoned", "never by itself"
    assert log.requeue(bad) == "failing"
    assert log.get(bad).failures == 0
    assert desk.relay.turn().jobs == 3
    assert log.get(bad).state == "fanned_out"
    with pytest.raises(
        Conflict, match="expected one whose fan-out failed; got one that was fanned"
    ):
        log.requeue(bad)
    waiting = desk.record("order.paid")
    assert log.requeue(waiting) == "pending"
    with pytest.raises(NotFound):
        log.requeue("00000000-0000-0000-0000-000000000000")


def test_an_event_that_is_given_up_is_left_out_on_purpose(desk, log):
    bad = poison(desk)
    log.skip(bad)
    found = log.get(bad)
    assert found.state == "fanned_out"
    assert found.deliveries == tuple(
        Delivery(n, None, "skipped") for n in ("audit", "ship", "total")
    )
    assert violations(desk.session, 86_400.0) == []
    desk.relay.turn()
    assert desk.count("job") == 0
    with pytest.raises(Conflict, match="expected one whose fan-out failed; got one that is fanned"):
        log.skip(bad)
    with pytest.raises(NotFound):
        log.skip("00000000-0000-0000-0000-000000000000")


def test_200_poison_events_at_the_head_hold_up_nobody_and_are_requeued_at_once(desk, ops):
    desk.refuse("bad")
    desk.conn.execute(
        "insert into weirkeeper.event (type, subject)"
        " select 'order.paid', 'bad' from generate_series(1, 200)"
    )
    desk.record_many("order.paid", 500)
    turns = 0
    while desk.count("event_fanout") < 500:
        desk.relay.turn()
        turns += 1
    assert turns <= 5
    assert desk.count("event_failure") == 200

    while desk.rows("select 1 from weirkeeper.event_failure where poisoned_at is null"):
        desk.relay.turn()
        turns += 1
        assert turns < 200
    assert desk.rows("select distinct failures from weirkeeper.event_failure") == [{"failures": 5}]
    assert desk.relay.turn().rows == 0, "never tried again by itself"
    desk.allow()
    assert call(ops, "events.requeue", {"all": True}).events == 200
    while desk.count("event_failure"):
        desk.relay.turn()
    assert desk.count("event_fanout") == 700
    assert len(desk.jobs("ship")) == 700


def test_a_requeue_wakes_a_relay_that_sleeps(desk, log):
    bad = poison(desk)
    with connect(desk.url, "sleeper") as sleeper:
        sleeper.execute("listen weirkeeper_relay")
        sleeper.execute("select pg_advisory_lock(1464160587, 0), pg_advisory_lock(1464160587, 1)")
        log.requeue(bad)
        assert [n.payload for n in sleeper.notifies(timeout=5, stop_after=1)] == [""]


def test_types_tell_who_wants_them(desk, log):
    found = {t.name: t for t in log.types()}
    assert set(found) == {"order.paid", "order.line.added", "quiet", "corpus.note.changed"}
    assert found["order.paid"].subscriptions == ["audit", "ship", "total"]
    assert found["quiet"].subscriptions == []
    assert (found["order.paid"].exposure, found["quiet"].exposure) == ("webhook", "internal")


def test_a_dry_run_tells_whom_the_last_events_would_have_reached(desk, ops):
    desk.record_many("quiet", 5)
    desk.relay.turn()
    desk.record("order.paid", "1")
    desk.record("order.line.added", "1")
    desk.relay.turn()

    def reached(**arguments):
        return [
            (r.type, r.events, r.subscribers, r.endpoints)
            for r in call(ops, "events.dry_run", arguments)
        ]

    paid = ("order.paid", 1, ["audit", "ship", "total"], ["17"])
    line = ("order.line.added", 1, ["audit", "total"], [])
    assert reached() == [line, paid, ("quiet", 5, [], [])]
    assert reached(limit=2) == [line, paid]
    assert reached(types=["order.*"]) == [line, paid]
    assert reached(types=["*.paid", "quiet"]) == [paid, ("quiet", 5, [], [])]
    for wrong in ("nobody.*", "Order.*", ""):
        with pytest.raises(InvalidArguments, match="expected a glob that matches a declared"):
            reached(types=[wrong])


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("events.list", {"limit": 0}, "limit: expected 1 to 500"),
        ("events.list", {"type": "nobody"}, "type: expected a glob"),
        ("events.requeue", {}, "expected one event, or that all poisoned ones are meant"),
        ("events.requeue", {"id": "x", "all": True}, "got both or none"),
        ("events.dry_run", {"limit": 0}, "limit: expected 1 to 10000"),
        ("events.replays", {"limit": 501}, "limit: expected 1 to 500"),
        (
            "events.replay",
            {"subscriber": "ship", "since": "yesterday", "until": "2030-01-01T00:00:00Z"},
            "since: expected a moment with a time zone",
        ),
        (
            "events.replay",
            {"subscriber": "ship", "since": "2030-01-01T00:00:00", "until": "2030-01-02T00:00:00Z"},
            "since: expected a moment with a time zone",
        ),
        (
            "events.replay",
            {"subscriber": "ship", "since": "2030-01-01T00:00Z", "until": "2030-01-01T00:00Z"},
            "until: expected a moment after since",
        ),
    ],
)
def test_arguments_are_checked(ops, name, arguments, said):
    with pytest.raises(InvalidArguments, match=said):
        call(ops, name, arguments)


def test_no_look_reads_a_table_whole(desk, log):
    desk.record_many("order.paid", 20_000)
    while desk.relay.turn().full:
        pass
    desk.record_many("order.paid", 5000)
    desk.conn.execute("analyze")
    event = log.list(Filter(), limit=1)[0].id
    page = {"types": ["quiet"], "subject": None, "owner_id": None, "poisoned": None, "limit": 50,
            "window": 5000, "at": "infinity"}  # fmt: skip
    zero = "f" * 32
    looks = {
        "events/page_pending": {**page, "below": 2**62},
        "events/page_failed": {**page, "below": zero},
        "events/page_fanned": {**page, "below": zero},
        "events/get": {"id": event},
        "events/deliveries": {"id": event},
        "events/last": {"count": 100},
    }
    for name, params in looks.items():
        with log._conn.transaction(force_rollback=True):
            log._conn.execute(statement("inspector/bound"))
            row = log._conn.execute("explain (format json) " + statement(name), params).fetchone()
        told = json.dumps(row[0])
        assert "Seq Scan" not in told, (name, told)
