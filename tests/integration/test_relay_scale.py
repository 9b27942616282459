"""A long line stays cheap: plans by index, flat passes, and floors over what vacuum cannot take."""

from __future__ import annotations

import time

import psycopg
import pytest

from shared.postgres.driver.statements import statement
from shared.postgres.events.relay import _LANE, PostgresOutbox
from tests.support.outbox import Desk
from tests.support.waiting import until

PASSES = 15
# Tables of a few rows, which the plan may read whole.
SMALL = {"event_pending_seq"}


@pytest.fixture
def desk(database_url, tmp_path):
    opened = Desk(database_url, tmp_path)
    yield opened
    opened.close()


def pass_time(outbox: PostgresOutbox) -> float:
    """Seconds of the fastest of some full passes: other programs only ever slow them."""
    taken = []
    for _ in range(PASSES):
        began = time.perf_counter()
        assert outbox.next_pass().full
        taken.append(time.perf_counter() - began)
    return min(taken)


def scans(node: dict[str, object]) -> list[dict[str, object]]:
    found = [node] if "Relation Name" in node else []
    for child in node.get("Plans", []):
        found += scans(child)
    return found


def plan(desk: Desk, name: str, params: dict[str, object]) -> list[dict[str, object]]:
    with desk.session.transaction(force_rollback=True):
        row = desk.session.execute("explain (format json) " + statement(name), params).fetchone()
    return scans(row[0][0]["Plan"])


def test_every_statement_uses_its_indexes_with_100000_rows_waiting(desk):
    desk.record_many("order.paid", 100_000)
    desk.conn.execute("analyze")
    row = {"after": 0, "upto": 2**63 - 1, "size": 200, "retry": None, "look": True}
    found = plan(desk, "relay/fan_out", row)
    assert {
        s["Index Name"]
        for s in found
        if s["Relation Name"] == "event_pending" and "Index Name" in s
    } == {"event_pending_pkey"}
    found += plan(desk, "relay/pending", {"after": 5, "size": 200})
    found += plan(desk, "relay/set_aside", {"seq": 5, "error": "", "delay": 1.0})
    found += plan(desk, "relay/due", {"size": 20})
    again = {"event_id": None, "failures": 1, "error": "", "delay": 1.0, "limit": 5}
    found += plan(desk, "relay/failed_again", again)
    read_whole = {s["Relation Name"] for s in found if s["Node Type"] == "Seq Scan"}
    assert read_whole <= SMALL


def test_the_plan_made_on_an_empty_outbox_is_right_for_a_full_one_and_passes_stay_flat(desk):
    desk.conn.execute("vacuum analyze weirkeeper.event_pending")
    desk.conn.execute("alter table weirkeeper.event_pending set (autovacuum_enabled = off)")
    desk.outbox.next_pass()  # the one generic plan of the session
    desk.record_many("quiet", 200 * PASSES + 1000)
    few = pass_time(desk.outbox)
    desk.record_many("quiet", 100_000)
    many = pass_time(desk.outbox)
    assert many < 2 * few, f"{few * 1000:.1f} → {many * 1000:.1f} ms"


def rise(outbox: PostgresOutbox, floor: int) -> None:
    """Look until the floor has risen: writers of the server's other databases hold it, too."""

    def risen() -> bool:
        outbox.next_pass()
        return outbox._floors.of(_LANE) >= floor

    until(risen, 30, f"the floor has risen to {floor}")


def test_dead_rows_under_a_held_snapshot_do_not_slow_an_idle_look(desk):
    with psycopg.connect(desk.url) as holder:
        holder.execute("set transaction isolation level repeatable read")
        holder.execute("select count(*) from weirkeeper.event")
        desk.record_many("quiet", 60_000)
        while desk.outbox.next_pass().full:
            pass
        desk.record("quiet")
        assert desk.outbox.next_pass().rows == 1
        rise(desk.outbox, 60_000)  # a reader does not hold it back

        def look(outbox: PostgresOutbox) -> float:
            began = time.perf_counter()
            outbox.next_pass()
            return time.perf_counter() - began

        with_floor = min(look(desk.outbox) for _ in range(9))
        reset = []
        for _ in range(9):
            desk.outbox._floors.reset()
            reset.append(look(desk.outbox))
        without = min(reset)
    assert with_floor < without / 2, f"{with_floor * 1000:.2f} against {without * 1000:.2f} ms"


def test_once_a_minute_it_looks_from_the_very_beginning(desk):
    desk.record_many("quiet", 3)
    rise(desk.outbox, 3)
    # A row below the floor cannot appear by our own ways in; the net finds it all the same.
    event = desk.record("quiet")
    desk.conn.execute("update weirkeeper.event_pending set seq = 1 where event_id = %s", [event])
    assert desk.outbox.next_pass().rows == 0
    desk.outbox._forgot_at -= 60
    assert desk.outbox.next_pass().rows == 1
