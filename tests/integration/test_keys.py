"""Concurrency keys: never more at once than the kind says, the oldest first, no place ever lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from shared.jobs.work import Finish
from shared.postgres.queues import claims as module
from shared.postgres.queues import completions
from shared.postgres.queues.claims import Claims, lanes_of
from shared.postgres.queues.lines import Lines
from shared.postgres.queues.promotions import expire
from shared.postgres.queues.rescues import rescue
from shared.postgres.queues.retention import discard_unknown
from tests.support import steps as how
from tests.support.keyed import KEY, add, ids, let, places, stuck
from tests.support.steps import EPOCH, KIND, QUEUE, notices_fixture, steps_fixture  # noqa: F401

DAY = 86_400.0


def test_one_runs_and_the_others_are_parked_in_order(steps):
    jobs = add(steps, 4)
    [free] = add(steps, key="another")
    claims = steps.claim()
    assert ids(claims) == [jobs[0], free]
    assert places(steps) == {"running": jobs[:1], "called": [], "parked": jobs[1:]}
    assert steps.claim() == [], "a look that found only what must wait is an empty one"
    for n in range(4):
        assert steps.finish(claims[0]) == 1
        assert places(steps) == {
            "running": [],
            "called": jobs[n + 1 : n + 2],
            "parked": jobs[n + 2 :],
        }
        claims = steps.claim()
        assert ids(claims) == jobs[n + 1 : n + 2]
    assert places(steps) == {"running": [], "called": [], "parked": []}


def test_the_kind_says_how_many(steps):
    let(steps, KEY, 3)
    jobs = add(steps, 8)
    claims = steps.claim()
    assert ids(claims) == jobs[:3]
    for claim in claims[:2]:
        steps.finish(claim)
    assert places(steps) == {"running": [jobs[2]], "called": jobs[3:5], "parked": jobs[5:]}
    assert ids(steps.claim()) == jobs[3:5]


def test_a_small_batch_looks_on_behind_what_is_parked(steps):
    add(steps, 20)
    last = steps.enqueue()
    claims = Claims(steps.conn, QUEUE, EPOCH)
    assert len(claims.claim([KIND], 2)) == 1
    assert ids(claims.claim([KIND], 2)) == [last]
    assert len(places(steps)["parked"]) == 19


def test_a_claim_that_only_parks_gives_up_soon_and_keeps_what_it_did(steps, monkeypatch):
    add(steps, 20)
    last = steps.enqueue()
    claims = Claims(steps.conn, QUEUE, EPOCH)
    assert len(claims.claim([KIND], 2)) == 1
    monkeypatch.setattr(module, "LOOK_ON", 0.0)
    looks = 0
    while not (got := ids(claims.claim([KIND], 2))):
        assert claims.unfinished
        looks += 1
        assert len(places(steps)["parked"]) == min(19, 1 + 2 * looks)
    assert (got, claims.unfinished, looks) == ([last], False, 9)
    assert claims.claim([KIND], 2) == []
    assert not claims.unfinished, "a sweep found nothing"


@pytest.mark.parametrize("limit", ["cap", "rate"])
def test_under_a_limit_keys_are_locked_once_in_a_transaction(steps, limit):
    table, name, what = {
        "cap": ("queue", QUEUE, "cap = 5"), "rate": ("kind", KIND, "rate_n = 5, rate_ms = 1000"),
    }[limit]  # fmt: skip
    steps.conn.execute(f"update weirkeeper.{table} set {what} where name = %s", [name])
    add(steps, 20)
    last = steps.enqueue()
    lines = Lines(steps.conn, QUEUE, EPOCH)
    assert len(lines.claim([KIND], 2)) == 1
    looks = 0
    while not (got := ids(lines.claim([KIND], 2))):
        assert lines.cut.unfinished
        looks += 1
        assert len(places(steps)["parked"]) == min(19, 1 + 2 * looks)
    assert (got, lines.cut.unfinished, looks) == ([last], False, 9)


def test_one_whose_end_is_asked_for_before_it_is_parked_ends(steps):
    add(steps, 1)
    [first] = steps.claim()
    [second, third] = add(steps, 2)

    class Interrupted(Claims):
        def _admitted(self, batch, keyed):
            if batch:
                asked = steps.conn.execute(
                    "select state from weirkeeper.cancel_jobs(%s)", [[second]]
                )
                assert asked.fetchall() == [("running",)]
            return super()._admitted(batch, keyed)

    assert Interrupted(steps.conn, QUEUE, EPOCH).claim([KIND], 10) == []
    assert places(steps)["parked"] == [third]
    ended = steps.conn.execute("select weirkeeper.ended_state(%s)", [second])
    assert ended.fetchone() == ("cancelled",)
    steps.finish(first)
    assert ids(steps.claim()) == [third]


def test_a_new_one_never_goes_past_one_that_waits(steps):
    old = add(steps, 3)
    [first] = steps.claim()
    new = add(steps, 1)
    steps.finish(first)  # old[1] is called, to the end of the line, behind the new one
    [second] = steps.claim()
    assert ids([second]) == [old[1]]
    assert places(steps)["parked"] == [old[2], *new]


WAYS_OUT = {
    "completed": {},
    "completed with a result": {"result": '{"x":1}'},
    "retried later": how.FAILED,
    "its last try": how.SPENT,
    "discarded": how.DISCARDED,
    "snoozed": how.SNOOZED,
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_end_of_a_run_lets_the_next_one_go_on(steps, way):
    first, second, third = add(steps, 3)
    [claim] = steps.claim()
    assert steps.finish(claim, **WAYS_OUT[way]) == 1
    assert places(steps) == {"running": [], "called": [second], "parked": [third]}
    assert ids(steps.claim()) == [second]
    assert steps.where(first) == (["scheduled"] if "delay" in WAYS_OUT[way] else [])


def test_a_batch_of_all_kinds_of_ends_lets_each_key_go_on(steps):
    for key in "abcd":
        add(steps, 2, key)
    batch = steps.claim()
    ends = [how.SPENT, {}, how.FAILED, {}]
    finishes = [
        Finish(claim.job_id, claim.token, **end) for claim, end in zip(batch, ends, strict=True)
    ]
    assert completions.finish(steps.conn, EPOCH, finishes) == 4
    assert [len(places(steps, key)["called"]) for key in "abcd"] == [1] * 4


def test_one_that_goes_straight_back_in_line_keeps_its_place(steps):
    first, second = add(steps, 2)
    [claim] = steps.claim()
    Claims(steps.conn, QUEUE, EPOCH).give_back([claim])
    assert places(steps) == {"running": [], "called": [first], "parked": [second]}
    [claim] = steps.claim()
    steps.finish(claim, **how.INTERRUPTED)
    assert places(steps) == {"running": [], "called": [first], "parked": [second]}
    steps.claim()
    assert rescue(steps.conn, {EPOCH: "dead"}) == {"dead": 1}
    assert places(steps) == {"running": [], "called": [first], "parked": [second]}
    assert ids(steps.claim()) == [first]


def test_a_place_of_one_that_was_cancelled_goes_on(steps):
    first, second, third, fourth, fifth = add(steps, 5)
    steps.claim()
    steps.inspector.cancel(first)  # it runs: its owner is asked
    assert places(steps)["running"] == [first]
    assert Claims(steps.conn, QUEUE, EPOCH).give_back(Claims(steps.conn, QUEUE, EPOCH).held()) == 1
    assert places(steps) == {"running": [], "called": [second], "parked": [third, fourth, fifth]}
    assert steps.inspector.cancel(second) == "cancelled"
    assert places(steps) == {"running": [], "called": [third], "parked": [fourth, fifth]}
    assert steps.inspector.cancel(fourth) == "cancelled"
    assert places(steps) == {"running": [], "called": [third], "parked": [fifth]}
    [claim] = steps.claim()
    steps.inspector.cancel(third)
    steps.finish(claim, **how.FAILED)
    assert steps.log(third) == [("failed", "cancelled")]
    assert places(steps) == {"running": [], "called": [fifth], "parked": []}


def test_a_cancel_in_an_open_transaction_holds_up_no_end(steps):
    let(steps, KEY, 2)
    jobs = add(steps, 6)
    running = steps.claim()
    steps.finish(running[0])
    with psycopg.connect(steps.url) as application:
        application.execute("select weirkeeper.cancel_jobs(%s)", ([int(jobs[2])],))
        assert steps.finish(running[1]) == 1, "it does not wait"
    assert places(steps) == {"running": [], "called": jobs[3:5], "parked": jobs[5:]}
    assert stuck(steps) == []


def test_a_dead_owners_last_try_lets_the_next_one_go_on(steps):
    jobs = add(steps, 2, max_attempts=1)
    [claim] = steps.claim()
    Claims(steps.conn, QUEUE, EPOCH).mark_started([claim])
    rescue(steps.conn, {EPOCH: "dead"})
    assert steps.state(jobs[0]) == "discarded"
    assert places(steps)["called"] == [jobs[1]]


def test_a_claim_that_was_not_let_through_holds_no_place(steps):
    """Its reply was lost, or its owner died, between the claim and the look at the keys."""
    jobs = add(steps, 2)
    claims = Claims(steps.conn, QUEUE, EPOCH)
    claims._take(lanes_of((KIND,), (None,) * 4), 1)  # and no more
    assert places(steps)["running"] == []
    assert steps.where(jobs[0]) == ["running"]
    [other] = Claims(steps.conn, QUEUE, EPOCH + 1).claim([KIND], 5)
    assert ids([other]) == jobs[1:]
    rescue(steps.conn, {EPOCH: "dead"})
    assert steps.where(jobs[0]) == ["ready"]
    assert steps.claim() == []
    assert places(steps) == {"running": jobs[1:], "called": [], "parked": jobs[:1]}


def test_what_expires_gives_up_its_place(steps):
    _, second, third, fourth = add(steps, 4)
    [claim] = steps.claim()
    moment = datetime.now(UTC) + timedelta(hours=1)
    for job in (second, third, fourth):  # parked, and then called
        steps.conn.execute("update weirkeeper.job set expires_at = %s where id = %s", (moment, job))
    steps.conn.execute(
        "insert into weirkeeper.expiry select 't', now() - interval '1 s', id from weirkeeper.job"
        " where id = any (%s)",
        ([int(second), int(third)],),
    )
    steps.finish(claim)
    assert places(steps)["called"] == [second]
    assert expire(steps.conn, QUEUE) == 2
    assert places(steps) == {"running": [], "called": [fourth], "parked": []}
    steps.conn.execute("update weirkeeper.job set expires_at = now() where id = %s", (fourth,))
    [fifth] = add(steps)
    assert ids(steps.claim()) == [fifth], "the claim discards one that has expired"
    assert steps.log(fourth) == [("discarded", "discarded")]


def test_a_kind_that_nobody_knows_gives_up_its_place(steps):
    _, second = add(steps, 2)
    [claim] = steps.claim()
    steps.finish(claim)
    steps.conn.execute("update weirkeeper.ready set ready_at = now() - interval '2 days'")
    assert discard_unknown(steps.conn, [], [], DAY, lambda: False) == 1
    assert steps.state(second) == "discarded"
    [third] = add(steps)
    assert ids(steps.claim()) == [third]


def test_a_retry_by_hand_waits_for_its_turn(steps):
    first, second, third = add(steps, 3)
    [claim] = steps.claim()
    steps.finish(claim, **how.FAILED)
    assert steps.inspector.retry(first) == "retryable"
    assert ids(steps.claim()) == [second]
    assert places(steps) == {"running": [second], "called": [], "parked": [first, third]}
    assert steps.inspector.retry(first) == "retryable", "a parked one stays"
    assert steps.state(first) == "retryable"
