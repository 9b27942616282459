"""Concurrency keys that are closed, the ways in, the nets underneath, and everything at once."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from shared.errors import InvalidArguments
from shared.jobs.port import EnqueueOpts
from shared.jobs.work import Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Use, connect
from shared.postgres.inspection.verify import repair, violations
from shared.postgres.queues import completions, keys
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.keys import UNTIL_ENABLED, key_open
from shared.postgres.queues.promotions import promote
from shared.postgres.queues.retention import prune_records
from tests.support import steps as how
from tests.support.keyed import KEY, add, ids, let, places, stuck
from tests.support.steps import KIND, QUEUE, steps_fixture  # noqa: F401

DAY = 86_400.0


# ── closing ─────────────────────────────────────────────────────────────────────────────────────


def test_a_closed_key_starts_nothing_and_opens_by_itself(steps):
    _, second, third = add(steps, 3)
    [claim] = steps.claim()
    assert key_open(steps.conn, KEY, datetime.now(UTC) + timedelta(hours=1)) == 0
    steps.finish(claim)
    assert places(steps) == {"running": [], "called": [], "parked": [second, third]}
    told = steps.inspector.explain(second)
    assert (told.waits_for, bool(told.until)) == ("key", True)
    assert f"closed until {told.until}" in told.sentence
    moved, due = promote(steps.conn, QUEUE)
    assert moved == 0
    assert due is not None
    assert 3500 < due <= 3600
    steps.conn.execute("update weirkeeper.key set open_at = now()")
    assert promote(steps.conn, QUEUE) == (0, None)
    assert ids(steps.claim()) == [second]
    assert steps.one("select open_at from weirkeeper.key where open_at > '-infinity'") is None


def test_a_key_that_closes_stops_those_that_were_called(steps):
    _, second, third = add(steps, 3)
    [claim] = steps.claim()
    steps.finish(claim)
    key_open(steps.conn, KEY, UNTIL_ENABLED)
    assert steps.claim() == []
    assert places(steps) == {"running": [], "called": [], "parked": [second, third]}
    assert promote(steps.conn, QUEUE) == (0, None)
    told = steps.inspector.explain(second)
    assert (told.waits_for, told.until) == ("key", None)
    assert "closed until it is enabled" in told.sentence
    assert key_open(steps.conn, KEY) == 1
    assert ids(steps.claim()) == [second]


def test_a_key_may_be_closed_before_it_is_used(steps):
    key_open(steps.conn, "new", UNTIL_ENABLED)
    [job] = add(steps, 1, "new")
    assert steps.claim() == []
    steps.conn.execute("select weirkeeper.key_open('new', now() - interval '1 s')")
    assert ids(steps.claim()) == [job]


@pytest.mark.parametrize("name", ["", "x" * 201, None])
def test_a_name_that_cannot_be_is_refused(steps, name):
    with pytest.raises(InvalidArguments, match="1 to 200 characters"):
        key_open(steps.conn, name)
    for query in (
        "select weirkeeper.enqueue('t.ok', concurrency_key => %s)",
        "select weirkeeper.enqueue_many('t.ok', '{}', concurrency_key => %s)",
        "insert into weirkeeper.job (kind, concurrency_key) values ('t.ok', %s)",
    ):
        if name is not None:
            with pytest.raises(psycopg.Error) as refused:
                steps.conn.execute(query, (name,))
            assert refused.value.sqlstate == "WK004"


# ── every way in ────────────────────────────────────────────────────────────────────────────────


def test_every_way_to_enqueue_takes_a_key(steps):
    opts = EnqueueOpts(concurrency_key=KEY)
    jobs = PostgresJobs(steps.conn).enqueue_many(KIND, [{}, {}], opts)
    for query in (
        "select weirkeeper.enqueue('t.ok', concurrency_key => 'k')",
        "select (weirkeeper.enqueue_many('t.ok', array['{}'::jsonb], concurrency_key => 'k'))[1]",
        "insert into weirkeeper.job (kind, concurrency_key) values ('t.ok', 'k') returning id",
        "insert into weirkeeper.job (kind, concurrency_key, tags) values ('t.ok', 'k', '{}') returning id",
    ):
        jobs.append(str(steps.one(query)))
    assert ids(steps.claim()) == jobs[:1]
    assert places(steps)["parked"] == jobs[1:]


def test_keys_of_kinds_meet_in_one_name(steps):
    one = steps.enqueue("t.ok", concurrency_key=KEY)
    other = steps.enqueue("t.fail", concurrency_key=KEY)
    assert len(steps.claim(("t.ok", "t.fail"))) == 1
    assert sorted([*places(steps)["running"], *places(steps)["parked"]]) == sorted([one, other])


# ── nets ────────────────────────────────────────────────────────────────────────────────────────


def leave(steps):
    """A parked job whose key has a place, as no code of ours leaves it."""
    _, second = add(steps, 2)
    [claim] = steps.claim()
    steps.conn.execute("update weirkeeper.running set key = null")
    steps.finish(claim)
    assert places(steps)["parked"] == [second]
    assert stuck(steps) == [KEY]
    return second


def test_the_sweep_finds_what_waits_in_vain(steps):
    job = leave(steps)
    assert keys.sweep(steps.conn) == 1
    assert ids(steps.claim()) == [job]
    assert keys.sweep(steps.conn) == 0


def test_verify_finds_and_mends_what_the_sweep_did_not(steps):
    job = leave(steps)
    assert violations(steps.conn, DAY) == [], "the sweep will see to it"
    steps.conn.execute("update weirkeeper.parked set parked_at = now() - interval '2 min'")
    assert [(v.rule, v.subject) for v in violations(steps.conn, DAY)] == [
        ("parked_though_free", job)
    ]
    assert [(m.rule, m.subject) for m in repair(steps.conn, DAY)] == [("parked_though_free", job)]
    assert violations(steps.conn, DAY) == []


def test_a_raised_limit_is_found_by_the_sweep(steps):
    jobs = add(steps, 5)
    steps.claim()
    let(steps, KEY, 3)
    assert keys.sweep(steps.conn) == 2
    assert ids(steps.claim()) == jobs[1:3]


def test_keys_that_nobody_uses_are_pruned_and_made_anew(steps):
    add(steps, 1, "running")
    steps.claim()
    add(steps, 2, "done")
    [claim] = steps.claim()
    steps.finish(claim)
    [claim] = steps.claim()
    steps.finish(claim)
    key_open(steps.conn, "closed", UNTIL_ENABLED)
    assert prune_records(steps.conn, DAY, lambda: False)["keys"] == 1
    names = steps.conn.execute("select name from weirkeeper.key order by 1").fetchall()
    assert names == [("closed",), ("running",)]
    assert len(add(steps, 2, "done")) == 2
    assert len(steps.claim()) == 1


def test_counts_and_lists_show_parked_jobs(steps):
    first, second, third = add(steps, 3)
    [claim] = steps.claim()
    steps.finish(claim, **how.FAILED)
    steps.inspector.retry(first)
    steps.claim()
    [overview] = steps.inspector.overview(KIND)
    assert overview.counts["pending"] == 1
    assert overview.counts["retryable"] == 1
    assert overview.counts["running"] == 1
    told = steps.inspector.explain(third)
    assert told.where == "parked"
    assert f"held by job {second}" in told.sentence


# ── at once ─────────────────────────────────────────────────────────────────────────────────────


def work(url: str, epoch: int) -> None:
    """A queue process whose jobs end in several ways, until there is nothing more."""
    with connect(url, f"work {epoch}", Use.HOT) as conn:
        claims, idle = Claims(conn, QUEUE, epoch), 0
        while idle < 40:
            batch = claims.claim([KIND], 3)
            idle = 0 if batch else idle + 1
            ends = [
                Finish(c.job_id, c.token, **(how.SPENT if c.job_id % 7 == 0 else {})) for c in batch
            ]
            if batch and batch[0].job_id % 5 == 0 and batch[0].run < 4:
                claims.give_back(batch[:1])
                ends = ends[1:]
            if ends:
                completions.finish(conn, epoch, ends)


def test_whatever_two_processes_do_no_place_is_doubled_or_lost(steps):
    """Claims, ends, cancels and rescues of three sessions; a fourth looks all the while."""
    let(steps, KEY, 2)
    for n in range(240):
        steps.enqueue(concurrency_key=f"k{n % 6}")
    over: list[object] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def cancel() -> None:
        with psycopg.connect(steps.url, autocommit=True) as conn:
            for job in range(1, 240, 11):
                conn.execute("select weirkeeper.cancel_jobs(%s)", ([job],))

    def look() -> None:
        with psycopg.connect(steps.url, autocommit=True) as conn:
            while not done.is_set():
                over.extend(
                    conn.execute(
                        "select key, count(*) from (select key from weirkeeper.running"
                        " union all select key from weirkeeper.ready) p"
                        " where key is not null group by key having count(*) > 2"
                    ).fetchall()
                )

    def guarded(act, *args) -> None:
        try:
            act(*args)
        except BaseException as error:  # noqa: BLE001  (told below)
            errors.append(error)

    looks = threading.Thread(target=guarded, args=(look,))
    looks.start()
    threads = [
        threading.Thread(target=guarded, args=(work, steps.url, epoch)) for epoch in (1, 2, 3)
    ]
    threads.append(threading.Thread(target=guarded, args=(cancel,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    looks.join()
    assert errors == []
    assert over == []
    assert stuck(steps) == []
    waits = "select count(*) from weirkeeper.{}"
    counts = {t: steps.one(waits.format(t)) for t in ("ready", "parked", "scheduled")}
    assert counts == {"ready": 0, "parked": 0, "scheduled": 0}
