"""Everything at once over the same jobs: nothing lost, nothing twice, one last word on each."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace

import pytest

from shared.errors import DatabaseUnavailable
from shared.jobs.port import JobFilter
from shared.jobs.work import Claim, Finish
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues import completions, controls
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.rescues import Beats, dead_owners, rescue
from shared.postgres.queues.retention import prune_jobs
from tests.support.steps import (
    EPOCH,
    KIND,
    QUEUE,
    fill,
    notices_fixture,  # noqa: F401
    steps_fixture,  # noqa: F401
)
from tests.support.waiting import pause, until

PLACES = "select count(*) from weirkeeper.{} where job_id = j.id"


class Hands:
    """Threads that each do one thing over and over; a deadlock is counted and tried again."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.stop = threading.Event()
        self.deadlocks: Counter[str] = Counter()
        self.turns: Counter[str] = Counter()
        self.errors: list[BaseException] = []
        self._threads: list[threading.Thread] = []

    def start(self, name: str, act: Callable[[Connection], None]) -> None:
        self._threads.append(threading.Thread(target=self._loop, args=(name, act), name=name))
        self._threads[-1].start()

    def _loop(self, name: str, act: Callable[[Connection], None]) -> None:
        try:
            with closing(connect(self.url, name, Use.HOT)) as conn:
                while not self.stop.is_set():
                    self._once(name, act, conn)
        except BaseException as error:  # noqa: BLE001  (told by the test's own thread)
            self.errors.append(error)

    def _once(self, name: str, act: Callable[[Connection], None], conn: Connection) -> None:
        try:
            act(conn)
            self.turns[name] += 1
        except DatabaseUnavailable as error:
            if error.sqlstate != "40P01":
                raise
            self.deadlocks[name] += 1

    def join(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join(30)
        assert self.errors == []


def standing(steps) -> Counter[int]:
    """How many jobs stand in how many places."""
    places = " + ".join(
        f"({PLACES.format(t)})" for t in ("ready", "scheduled", "parked", "running")
    )
    final = (
        "(select count(*) from (select state from weirkeeper.attempt a where a.job_id = j.id"
        " order by run desc limit 1) l where state in ('completed', 'discarded', 'cancelled'))"
    )
    rows = steps.conn.execute(
        f"select {places} + {final}, count(*) from weirkeeper.job j group by 1"
    ).fetchall()
    return Counter(dict(rows))


# ── batches ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "seconds", [4, pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(180)])]
)
def test_batches_over_the_same_rows_never_wait_in_a_circle(steps, seconds):
    """Finishes, cancel-all and retry-all, rescues, pruning: five hands on 500 jobs."""
    fill(steps, 500)
    pruned: list[int] = []
    hands = Hands(steps.url)
    rng = random.Random(1)

    def finish(conn: Connection) -> None:
        claims = Claims(conn, QUEUE, EPOCH).claim([KIND], rng.randint(1, 200))
        rng.shuffle(claims)
        ends = [Finish(c.job_id, c.token, **rng.choice(ENDS)) for c in claims]
        while ends and not _written(conn, ends, hands.deadlocks):
            pass

    def cancel(conn: Connection) -> None:
        PostgresInspector(conn).cancel_many(JobFilter())

    def again(conn: Connection) -> None:
        PostgresInspector(conn).retry_many(JobFilter())

    def die_and_be_rescued(conn: Connection) -> None:
        Claims(conn, QUEUE, EPOCH + 1).claim([KIND], 100)
        rescue(conn, {EPOCH + 1: "dead"})

    def prune(conn: Connection) -> None:
        found = prune_jobs(conn, 0.5, 0.5, lambda: False)
        pruned.append(found.rows)
        if found.rows:
            fill(SimpleNamespace(conn=conn), found.rows)  # so that there are always 500

    for name, act in (("finish", finish), ("cancel", cancel), ("retry", again),
                      ("rescue", die_and_be_rescued), ("prune", prune)):  # fmt: skip
        hands.start(name, act)
    hands.stop.wait(seconds)
    hands.join()
    assert dict(hands.deadlocks) == {}
    assert min(hands.turns.values()) > 3, hands.turns
    left = standing(steps)
    assert set(left) == {1}, left
    assert left[1] == 500
    assert sum(pruned) > 0


ENDS = (
    *({"outcome": "failed", "state": "retryable", "delay": 0.0, "error": "no"},) * 12,
    *({"outcome": "snoozed", "state": "pending", "delay": 0.0, "spent": False},) * 6,
    {"outcome": "discarded", "state": "discarded", "error": "no"},
    {"result": "1"},
    {},
)


def _written(conn: Connection, ends: list[Finish], deadlocks: Counter[str]) -> bool:
    try:
        completions.finish(conn, EPOCH, ends)
    except DatabaseUnavailable:
        deadlocks["finish"] += 1
        return False
    return True


# ── cancels ───────────────────────────────────────────────────────────────────────────────────────


class Fray:
    """Two processes claim, fail, snooze, give back and complete; a third hand cancels each once."""

    def __init__(self, ids: list[int], seed: int) -> None:
        self.rng = random.Random(seed)
        self.order = self.rng.sample(ids, len(ids))
        self.ran: Counter[int] = Counter()
        self.completed: set[int] = set()
        self.told: dict[int, tuple[str, int]] = {}  # state, and runs so far
        self._lock = threading.Lock()

    def work(self, epoch: int) -> Callable[[Connection], None]:
        def turn(conn: Connection) -> None:
            claims = Claims(conn, QUEUE, epoch)
            for claim in claims.claim([KIND], self.rng.randint(1, 40)):
                pause(self.rng.choice((0, 0, 0.001)), "the job runs")
                if self.rng.random() < 0.1:
                    claims.give_back([claim])
                else:
                    self._run(conn, epoch, claim)

        return turn

    def _run(self, conn: Connection, epoch: int, claim: Claim) -> None:
        with self._lock:
            self.ran[claim.job_id] += 1
        how = {} if self.rng.random() < 0.4 else self.rng.choice(ENDS[:18])
        held = completions.finish(conn, epoch, [Finish(claim.job_id, claim.token, **how)])
        if held and not how:
            self.completed.add(claim.job_id)

    def cancel(self, conn: Connection) -> None:
        batch = [self.order.pop() for _ in range(min(len(self.order), self.rng.choice((1, 2, 5))))]
        for moved in controls.cancel(conn, batch):
            with self._lock:
                self.told[moved.job_id] = (moved.state, self.ran[moved.job_id])
        pause(self.rng.choice((0, 0.001)) if batch else 0.01, "cancels are spread over the runs")


def test_two_thousand_cancels_around_claims_and_finishes(steps, notices):
    seed = random.randrange(2**32)
    number = 2000
    ids = [int(steps.enqueue()) for _ in range(number)]
    fray, hands = Fray(ids, seed), Hands(steps.url)
    hands.start("a", fray.work(EPOCH))
    hands.start("b", fray.work(EPOCH + 1))
    hands.start("cancel", fray.cancel)
    until(lambda: standing_final(steps) == number, 60, f"all are final (seed {seed})")
    hands.join()

    last = "select distinct on (job_id) job_id, state from weirkeeper.attempt order by 1, run desc"
    states = dict(steps.conn.execute(last).fetchall())
    assert {i for i, s in states.items() if s == "completed"} == fray.completed, seed
    assert set(states.values()) == {"completed", "cancelled"}, seed
    assert standing(steps) == {1: number}, seed
    assert notices.heard() == [str(i) for i in ids], seed
    for job, (told, runs) in fray.told.items():
        assert told in ("running", states[job]), (seed, job)
        if told == "cancelled":
            assert fray.ran[job] == runs, f"seed {seed}: {job} ran after its cancel"
    answers = Counter(told for told, _ in fray.told.values())
    assert set(answers) == {"cancelled", "completed", "running"}, answers


def standing_final(steps) -> int:
    return steps.one(
        "select count(*) from weirkeeper.job j where exists (select from weirkeeper.attempt a"
        " where a.job_id = j.id and a.state in ('completed', 'cancelled'))"
    )


# ── rescues ───────────────────────────────────────────────────────────────────────────────────────


def test_a_job_that_finished_after_the_rescuer_looked_stays_finished(steps, notices):
    job = steps.enqueue()
    [claim] = steps.claim()
    dead = dead_owners(steps.conn, 1, Beats())
    assert list(dead) == [EPOCH]
    assert steps.finish(claim) == 1
    assert sum(rescue(steps.conn, dead).values()) == 0
    assert (steps.log(job), steps.where(job)) == ([("completed", "completed")], [])
    assert notices.heard() == [job]


@pytest.mark.parametrize("first", ["finish", "rescue"])
def test_a_job_that_finishes_while_the_rescuer_writes_has_one_end(steps, notices, first):
    """Both orders: the rescue skips what the finish locks; the finish waits for the rescue."""
    job = steps.enqueue()
    [claim] = steps.claim()
    acts: dict[str, Callable[[Connection], int]] = {
        "finish": lambda conn: completions.finish(conn, EPOCH, [Finish(claim.job_id, claim.token)]),
        "rescue": lambda conn: sum(rescue(conn, {EPOCH: "dead"}).values()),
    }
    second = acts["rescue" if first == "finish" else "finish"]
    results: list[int] = []
    one, other = (connect(steps.url, name, Use.HOT) for name in "ab")
    with closing(one), closing(other):
        thread = threading.Thread(target=lambda: results.append(second(other)))
        with one.transaction():
            assert acts[first](one) == 1
            thread.start()
            if first == "finish":
                thread.join(5)
                assert results == [0], "a rescue waits for nobody"
        thread.join(5)
    assert results == [0]
    assert len(steps.log(job)) == 1
    assert notices.heard() == ([job] if first == "finish" else [])


def test_an_owner_without_a_row_counts_as_dead(steps):
    jobs = [steps.enqueue() for _ in range(3)]
    assert len(steps.claim()) == 3
    steps.conn.execute("update weirkeeper.running set started_at = now()")
    dead = dead_owners(steps.conn, 1, Beats())
    assert sum(rescue(steps.conn, dead).values()) == 3
    assert [steps.state(job) for job in jobs] == ["retryable"] * 3


def test_a_thousand_rows_to_be_skipped_hide_none(steps):
    steps.conn.execute(
        "insert into weirkeeper.process (epoch, role, slot, queue, host, boot_id, pid_namespace,"
        " pid, pid_started, version, phase, connections)"
        " overriding system value values (5, 'queue', 't', 't', 'elsewhere', 'b', 1, 12, 1, '0',"
        " 'ready', 1)"
    )
    fill(steps, 1500)
    assert len(Claims(steps.conn, QUEUE, 5).claim([KIND], 1000)) == 1000
    last = steps.enqueue(priority=1)
    assert [str(c.job_id) for c in steps.claim(limit=1)] == [last]
    dead = dead_owners(steps.conn, 1, Beats())
    assert sum(rescue(steps.conn, dead).values()) == 1
    assert steps.where(last) == ["ready"]
    assert steps.one("select count(*) from weirkeeper.running where epoch = 5") == 1000
