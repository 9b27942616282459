"""Caps, rates and turns of owners, as several processes claim at once."""

from __future__ import annotations

import threading

import psycopg
import pytest

from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Use, connect
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.lines import Lines, OwnersClaims
from shared.postgres.queues.promotions import promote
from shared.postgres.queues.rescues import rescue
from tests.support import steps as how
from tests.support.keyed import ids
from tests.support.steps import EPOCH, KIND, QUEUE, steps_fixture  # noqa: F401
from tests.support.waiting import until

NOOP = "t.noop"


def cap(steps, most):
    steps.conn.execute("update weirkeeper.queue set cap = %s where name = 't'", (most,))


def rate(steps, n, ms, kind=KIND):
    steps.conn.execute(
        "update weirkeeper.kind set rate_n = %s, rate_ms = %s where name = %s", (n, ms, kind)
    )


def fair(steps, kind=KIND):
    steps.conn.execute("update weirkeeper.kind set fair = true where name = %s", (kind,))


def lines(steps, epoch=EPOCH):
    return Lines(steps.conn, QUEUE, epoch)


def of(steps, owner, number=1, **opts):
    """Jobs of an owner."""
    opts = EnqueueOpts(owner_id=owner, **opts)
    return PostgresJobs(steps.conn).enqueue_many(KIND, [{}] * number, opts)


# ── caps ────────────────────────────────────────────────────────────────────────────────────────


def test_a_cap_counts_what_runs_of_every_process(steps):
    cap(steps, 3)
    for _ in range(5):
        steps.enqueue()
    one, two = lines(steps, 1), lines(steps, 2)
    first = one.claim([KIND], 2)
    assert len(first) == 2
    assert not one.cut.capped
    assert len(two.claim([KIND], 2)) == 1
    assert two.cut.capped
    assert two.claim([KIND], 2) == one.claim([KIND], 2) == []
    assert rescue(steps.conn, {1: "dead"}) == {"dead": 2}
    assert len(two.claim([KIND], 9)) == 2


def test_a_cap_that_is_declared_later_is_learned(steps):
    for _ in range(5):
        steps.enqueue()
    old = lines(steps)
    assert len(old.claim([KIND], 1)) == 1
    cap(steps, 2)
    old.learn()
    assert len(old.claim([KIND], 5)) == 1
    cap(steps, None)
    old.learn()
    assert len(old.claim([KIND], 5)) == 3


# ── rates ───────────────────────────────────────────────────────────────────────────────────────


def test_a_rate_with_room_asks_for_no_look_when_nothing_is_in_line(steps):
    """An idle process would look again at once, without end."""
    rate(steps, 2, 3_600_000)
    mine = lines(steps)
    assert mine.claim([KIND, NOOP], 9) == []
    assert mine.cut.opens is None
    steps.enqueue()
    assert len(mine.claim([KIND, NOOP], 9)) == 1
    assert mine.cut.opens is None
    steps.enqueue()
    steps.enqueue()
    assert len(mine.claim([KIND, NOOP], 9)) == 1
    assert mine.cut.opens == 0.0, "how long it is for is told by the next look"
    assert mine.claim([KIND, NOOP], 9) == []
    assert 3500 < mine.cut.opens <= 3600


def test_a_cap_that_is_reached_asks_for_no_look_for_the_sake_of_a_rate(steps):
    rate(steps, 1, 50)
    cap(steps, 1)
    steps.enqueue()
    steps.enqueue()
    mine = lines(steps)
    assert len(mine.claim([KIND], 9)) == 1
    until(
        lambda: mine.claim([KIND], 9) == [] and mine.cut.opens is None, 5, "the rate has room again"
    )
    assert mine.cut.capped


def test_a_rate_counts_the_starts_of_every_process(steps):
    rate(steps, 3, 3_600_000)
    for _ in range(5):
        steps.enqueue()
    other = steps.enqueue(NOOP)
    one, two = lines(steps, 1), lines(steps, 2)
    assert len(one.claim([KIND], 2)) == 2
    got = two.claim([KIND, NOOP], 5)
    assert len(got) == 2
    assert other in ids(got)
    assert two.claim([KIND], 5) == []
    assert two.cut.kinds == (KIND,)
    assert 3500 < two.cut.opens <= 3600
    # An hour passes for those that were first.
    steps.conn.execute(
        "update weirkeeper.rate_start set at = at - interval '1 hour'"
        " where at = (select min(at) from weirkeeper.rate_start)"
    )
    assert len(lines(steps, 3).claim([KIND], 5)) == 2


def test_what_a_key_parks_spends_no_start(steps):
    rate(steps, 2, 3_600_000)
    for _ in range(3):
        steps.enqueue(concurrency_key="k")
    last = steps.enqueue()
    claims = lines(steps)
    got = claims.claim([KIND], 2)
    while len(got) < 2:
        more = claims.claim([KIND], 2)
        assert more or claims.cut.unfinished, got
        got += more
    assert last in ids(got)
    assert claims.claim([KIND], 2) == []


def test_a_cap_and_a_rate_at_once(steps):
    cap(steps, 2)
    rate(steps, 3, 3_600_000)
    for _ in range(5):
        steps.enqueue()
    claims = lines(steps)
    first = claims.claim([KIND], 5)
    assert len(first) == 2
    for claim in first:
        steps.finish(claim)
    assert len(claims.claim([KIND], 5)) == 1
    assert claims.claim([KIND], 5) == []


# ── turns of owners ─────────────────────────────────────────────────────────────────────────────


def owners(claims):
    return [
        bytes(c.line).split(b'"owner_id":')[1].split(b",")[0].decode().strip('"') for c in claims
    ]


def test_one_job_of_another_owner_is_next_before_ten_thousand(steps):
    fair(steps)
    of(steps, "ada", 10_000)
    claims = lines(steps)
    assert owners(claims.claim([KIND], 4)) == ["ada"] * 4
    of(steps, "eve")
    assert sorted(owners(claims.claim([KIND], 4))) == ["ada", "ada", "ada", "eve"]
    assert owners(claims.claim([KIND], 4)) == ["ada"] * 4


def test_a_claim_by_turns_is_like_any_other(steps):
    opts = {"timeout": 7.5, "max_attempts": 4, "awaited": True, "trace": "t"}
    plain = Claims(steps.conn, QUEUE, EPOCH)
    of(steps, "ada", **opts)
    [one] = plain.claim([KIND], 1)
    fair(steps)
    of(steps, "ada", **opts)
    [other] = OwnersClaims(steps.conn, QUEUE, EPOCH).claim([KIND], 1)
    line = other.line.replace(str(other.job_id).encode(), str(one.job_id).encode())
    same = {"job_id": one.job_id, "token": one.token, "ready_age": one.ready_age, "line": line}
    assert other._replace(**same) == one
    assert other.timeout == 7.5


def test_owners_take_turns_claim_by_claim(steps):
    fair(steps)
    for owner in ("a", "b", "c", "d", "e"):
        of(steps, owner, 4)
    claims = lines(steps)
    assert [owners(claims.claim([KIND], 2)) for _ in range(5)] == [
        ["a", "b"], ["c", "d"], ["e", "a"], ["b", "c"], ["d", "e"],
    ]  # fmt: skip
    batch = claims.claim([KIND], 100)
    assert owners(batch) == [*"abcde"] * 2
    assert claims.claim([KIND], 100) == []


def test_priorities_come_before_turns(steps):
    fair(steps)
    late = of(steps, "a", 3)
    first = of(steps, "b", 3, priority=1)
    assert ids(lines(steps).claim([KIND], 100)) == [*first, *late]


def test_a_job_that_waits_again_waits_for_its_owners_turn(steps):
    fair(steps)
    first = of(steps, "ada", 3)
    of(steps, "ada", 20)
    claims = lines(steps)
    given, failed, interrupted = claims.claim([KIND], 3)
    steps.finish(failed, **{**how.FAILED, "delay": 0.001})
    steps.finish(interrupted, **how.INTERRUPTED)
    claims._open._all.give_back([given])
    steps.conn.execute("update weirkeeper.scheduled set run_at = now()")
    assert promote(steps.conn, QUEUE)[0] == 1
    steps.inspector.cancel(first[0])
    steps.inspector.retry(first[0])
    [parked] = PostgresJobs(steps.conn).enqueue_many(
        KIND, [{}], EnqueueOpts(owner_id="ada", concurrency_key="k")
    )
    without = "select count(*) from weirkeeper.ready where owner_id is distinct from 'ada'"
    assert steps.one(without) == 0
    assert parked in ids(claims.claim([KIND], 100))
    assert rescue(steps.conn, {EPOCH: "dead"})["dead"] > 0
    assert steps.one(without) == 0


def test_a_kind_that_became_fair_leaves_nobody_behind(steps):
    before = of(steps, "ada", 3)
    fair(steps)
    after = of(steps, "eve", 2)
    other = steps.enqueue(NOOP)
    got = ids(lines(steps).claim([KIND, NOOP], 100))
    assert sorted(got) == sorted([*before, *after, other])


def test_fair_kinds_and_others_share_a_queue(steps):
    fair(steps)
    of(steps, "ada", 50)
    for _ in range(50):
        steps.enqueue(NOOP)
    claims = lines(steps)
    kinds = [c.kind for _ in range(10) for c in claims.claim([KIND, NOOP], 4)]
    assert 10 <= kinds.count(NOOP) <= 30


# ── at once ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("limit", ["cap", "rate", "fair"])
def test_processes_that_claim_at_once_keep_the_limit_and_lose_nothing(steps, limit):
    for n in range(60):
        of(steps, f"o{n % 7}")
    {"cap": lambda: cap(steps, 3), "rate": lambda: rate(steps, 8, 200),
     "fair": lambda: fair(steps)}[limit]()  # fmt: skip
    over: list[object] = []
    done: list[str] = []
    errors: list[BaseException] = []

    def work(epoch: int) -> None:
        try:
            with connect(steps.url, f"work {epoch}", Use.HOT) as conn:
                claims = Lines(conn, QUEUE, epoch)
                while len(done) < 60:
                    batch = claims.claim([KIND], 2)
                    seen = conn.execute("select count(*) from weirkeeper.running").fetchone()
                    if limit == "cap" and seen[0] > 3:
                        over.append(seen)
                    for claim in batch:
                        conn.execute(
                            "delete from weirkeeper.running where job_id = %s", (claim.job_id,)
                        )
                        done.append(str(claim.job_id))
        except BaseException as error:  # noqa: BLE001  (told below)
            errors.append(error)

    threads = [threading.Thread(target=work, args=(epoch,)) for epoch in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert over == []
    assert len(done) == len(set(done)) == 60


def test_a_queue_without_limits_pays_one_look(steps):
    steps.enqueue()
    with psycopg.connect(steps.url, autocommit=True) as conn:
        conn.execute("select 1")
    claims = lines(steps)
    assert len(claims.claim([KIND], 1)) == 1
    assert steps.one("select count(*) from weirkeeper.rate_start") == 0
