"""Limits that change while jobs run, were called and wait: the new ones hold from the next start on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.postgres.queues import keys
from shared.postgres.queues.lines import Lines
from shared.postgres.queues.promotions import expire
from tests.support import steps as how
from tests.support.keyed import KEY, add, ids, let, places, stuck
from tests.support.steps import EPOCH, KIND, QUEUE, steps_fixture  # noqa: F401


def cap(steps, most):
    steps.conn.execute("update weirkeeper.queue set cap = %s where name = %s", (most, QUEUE))


def rate(steps, n, seconds):
    steps.conn.execute(
        "update weirkeeper.kind set rate_n = %s, rate_ms = %s where name = %s",
        (n, seconds * 1000, KIND),
    )


def test_a_lowered_limit_of_a_key_holds_for_those_that_were_called_before(steps):
    """Three ran; two of the next were called in their places when the limit became one."""
    let(steps, KEY, 3)
    jobs = add(steps, 7)
    first, second, third = steps.claim()
    steps.finish(first)
    steps.finish(second)
    assert places(steps)["called"] == jobs[3:5]
    let(steps, KEY, 1)
    assert steps.claim() == [], "the third still runs"
    assert places(steps) == {"running": [jobs[2]], "called": [], "parked": jobs[3:]}
    steps.finish(third)
    for job in jobs[3:]:
        [claim] = steps.claim()
        assert str(claim.job_id) == job, "in the order in which they came"
        steps.finish(claim)
    assert places(steps) == {"running": [], "called": [], "parked": []}


def test_a_lowered_limit_lets_through_as_many_as_it_says_of_those_that_were_called(steps):
    let(steps, KEY, 4)
    jobs = add(steps, 8)
    for claim in steps.claim():
        steps.finish(claim)
    let(steps, KEY, 2)
    running = steps.claim()
    assert ids(running) == jobs[4:6]
    assert places(steps) == {"running": jobs[4:6], "called": [], "parked": jobs[6:]}
    let(steps, KEY, 3)
    assert keys.sweep(steps.conn) == 1
    assert ids(steps.claim()) == jobs[6:7]
    assert stuck(steps) == []


def test_whatever_becomes_of_a_parked_job_the_others_keep_their_turns(steps):
    """Cancelled, retried, expired, cancelled and retried, while one runs."""
    moment = datetime.now(UTC) + timedelta(hours=1)
    runs, cancelled, retried, anew, last = add(steps, 5)
    [expired] = add(steps, expires_at=moment)
    [claim] = steps.claim()
    assert steps.inspector.cancel(cancelled) == "cancelled"
    assert steps.inspector.retry(retried) == "pending", "it waits for its turn as before"
    assert steps.inspector.cancel(anew) == "cancelled"
    assert steps.inspector.retry(anew) == "pending"
    steps.conn.execute("update weirkeeper.expiry set expires_at = now()")
    assert expire(steps.conn, QUEUE) == 1
    assert steps.log(expired) == [("discarded", "discarded")]
    assert steps.where(cancelled) == steps.where(expired) == []
    assert steps.claim() == [], "one runs"
    assert set(places(steps)["parked"]) == {retried, anew, last}
    steps.finish(claim, **how.FAILED)
    order = []
    while got := steps.claim():
        [claim] = got
        order.append(str(claim.job_id))
        steps.finish(claim)
    assert sorted(order) == sorted([retried, anew, last])
    assert order.index(retried) < order.index(last)
    assert steps.where(runs) == ["scheduled"]
    assert stuck(steps) == []


def test_a_lowered_cap_starts_nothing_until_fewer_run(steps):
    cap(steps, 4)
    for _ in range(8):
        steps.enqueue()
    one, two = Lines(steps.conn, QUEUE, EPOCH), Lines(steps.conn, QUEUE, EPOCH + 1)
    running = one.claim([KIND], 9)
    assert len(running) == 4
    cap(steps, 2)
    for claim in running[:2]:
        steps.finish(claim)
        assert one.claim([KIND], 9) == two.claim([KIND], 9) == []
        assert one.cut.capped
    steps.finish(running[2])
    assert len(two.claim([KIND], 9)) == 1
    assert one.claim([KIND], 9) == []


def test_a_cap_that_is_gone_holds_up_nobody_who_has_not_heard_of_it(steps):
    cap(steps, 1)
    for _ in range(4):
        steps.enqueue()
    lines = Lines(steps.conn, QUEUE, EPOCH)
    assert len(lines.claim([KIND], 9)) == 1
    cap(steps, None)
    assert len(lines.claim([KIND], 9)) == 3


def test_a_raised_rate_holds_from_when_it_is_learned(steps):
    """One a day was the most: whoever has started one waits no day for the next."""
    rate(steps, 1, 86_400)
    for _ in range(5):
        steps.enqueue()
    lines = Lines(steps.conn, QUEUE, EPOCH)
    assert len(lines.claim([KIND], 9)) == 1
    assert lines.claim([KIND], 9) == []
    assert lines.cut.opens > 80_000
    rate(steps, 3, 86_400)
    lines.learn()
    assert len(lines.claim([KIND], 9)) == 2
    rate(steps, 2**31 - 1, 86_400)
    lines.learn()
    assert len(lines.claim([KIND], 9)) == 2


def test_a_lowered_rate_counts_what_was_started_under_the_other(steps):
    rate(steps, 1_000_000, 1)
    for _ in range(50):
        steps.enqueue()
    lines = Lines(steps.conn, QUEUE, EPOCH)
    for _ in range(3):
        assert len(lines.claim([KIND], 10)) == 10
    rate(steps, 40, 3600)
    lines.learn()
    assert len(lines.claim([KIND], 99)) <= 40
    assert lines.claim([KIND], 99) == []
    rate(steps, 1, 3600)
    lines.learn()
    assert lines.claim([KIND], 99) == []
    assert 0 < lines.cut.opens <= 3600
