"""Every statement on a path that jobs take, on empty, small and large tables, looks rows up.

The plans are made while the tables are empty, as those of a process are that started first; then
the tables are filled, with the old plans and with such as the server's statistics lead to. None may
read a large table whole, or hash or merge it, and the pages touched must not grow with the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from shared.app import load_app
from shared.jobs.port import EnqueueOpts, Unique
from shared.jobs.work import Finish
from shared.postgres.application.answers import Answers
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.events.recorder import PostgresRecorder
from shared.postgres.events.relay import PostgresOutbox
from shared.postgres.queues import completions, controls, keys, promotions
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.lines import Lines
from shared.postgres.queues.rescues import Beats, dead_owners, rescue
from shared.postgres.queues.retention import prune_events, prune_jobs
from tests.support.crowd import BIG, OWNER, crowd, keep_statistics
from tests.support.deeds import ASIDE, BOUNDED, KIND, KINDS, QUEUE, Deed, Ground
from tests.support.past import DAY, WEEK
from tests.support.plans import Plan, Watch

APP = "tests.support.app:app"
SMALL = 2_000
LARGE = 500  # rows of a table that is read whole with reason, when the server knows its size
PREPARED = 6  # times until the driver prepares a statement, and the server makes its one plan
EVENT = "0b0e8f6c-2f6e-4a55-9a51-8d7a5f1f9d10"


def _claim(conn: Connection, _: Ground) -> None:
    claims = Claims(conn, QUEUE, OWNER + 1)
    claims.claim(KINDS, 100)
    claims.claim(KINDS, 100)


def _settle(conn: Connection, ground: Ground) -> None:
    ways: tuple[dict[str, Any], ...] = (
        {"outcome": "failed", "state": "retryable", "delay": 60.0, "error": "no"},
        {"outcome": "snoozed", "state": "pending", "delay": 0.0, "spent": False},
        {"outcome": "discarded", "state": "discarded", "error": "no"},
    )
    held = ground.held()
    ends = [Finish(c.job_id, c.token, **ways[n % 3]) for n, c in enumerate(held)]
    completions.finish(conn, OWNER, ends)


def _complete(conn: Connection, ground: Ground) -> None:
    completions.finish(conn, OWNER, [Finish(c.job_id, c.token) for c in ground.held()])


def _rescue(conn: Connection, _: Ground) -> None:
    dead_owners(conn, OWNER + 1, Beats())
    rescue(conn, {OWNER: "dead"})


def _held(conn: Connection, ground: Ground) -> None:
    claims = Claims(conn, QUEUE, OWNER)
    claims.held()
    claims.mark_started(ground.held())
    controls.to_cancel(conn, OWNER, QUEUE)
    claims.give_back(ground.held())


def _expired(conn: Connection, ground: Ground) -> None:
    params = {"job_ids": [c.job_id for c in ground.held()], "epoch": OWNER, "token": 1}
    conn.execute(statement("claims/discard_expired"), params)
    for look in (statement("queues/oldest"), statement("queues/oldest_free")):
        conn.execute(look, {"queue": QUEUE, "kinds": list(KINDS)})


def _promote(conn: Connection, _: Ground) -> None:
    promotions.promote(conn, QUEUE)
    promotions.promote_and_look(conn, QUEUE, OWNER)
    promotions.expire(conn, QUEUE)


def _enqueue(conn: Connection, _: Ground) -> None:
    jobs = PostgresJobs(conn)
    jobs.enqueue(KIND, {"n": 1}, EnqueueOpts())
    jobs.enqueue_many(KIND, [{"n": n} for n in range(100)], EnqueueOpts(priority=1))
    PostgresRecorder(conn).record("t.happened", subject="a")


def _unique(conn: Connection, _: Ground) -> None:
    jobs = PostgresJobs(conn)
    for opts in (Unique(), Unique(states=("pending", "running", "retryable"))):
        jobs.enqueue(KIND, {"n": -1}, EnqueueOpts(unique=opts))
    jobs.enqueue_many(KIND, [{"n": -n} for n in range(50)], EnqueueOpts(unique=Unique()))


def _by_hand(conn: Connection, ground: Ground) -> None:
    controls.cancel(conn, [*ground.ids(0), *ground.ids(4), *ground.ids(7)])
    controls.retry(conn, [*ground.ids(5), *ground.ids(9), *ground.ids(1)])


def _keyed(conn: Connection, ground: Ground) -> None:
    """Enqueued, let through, ended: the next one is called; one is cancelled, a key is opened."""
    claims = Claims(conn, QUEUE, OWNER + 2)
    for name in ("k7", "another"):
        PostgresJobs(conn).enqueue("t.fail", {}, EnqueueOpts(concurrency_key=name, priority=1))
    taken = claims.claim(("t.fail",), 10)
    completions.finish(conn, OWNER + 2, [Finish(c.job_id, c.token) for c in taken])
    controls.cancel(conn, ground.ids(3, 5))
    keys.key_open(conn, "k3")
    keys.open_due(conn)


def _by_turns(conn: Connection, _: Ground) -> None:
    """Under every limit there is: a cap, a rate, the turns of owners."""
    conn.execute("update weirkeeper.queue set cap = 100000 where name = %s", (QUEUE,))
    conn.execute(
        "update weirkeeper.kind set fair = true, rate_n = 1000, rate_ms = 1000 where name = %s",
        (KIND,),
    )
    assert len(Lines(conn, QUEUE, OWNER + 3).claim(KINDS, 100)) <= 100


def _wait(conn: Connection, ground: Ground) -> None:
    answers = Answers(ground.url, "plans")
    answers._conn = conn
    answers.jobs([str(i) for i in (*ground.ids(0), *ground.ids(7), *ground.ids(9))])
    answers.fanouts([EVENT])


def _prune(conn: Connection, _: Ground) -> None:
    once = iter((False, True))
    prune_jobs(conn, DAY, WEEK, lambda: next(once))


def _prune_events(conn: Connection, _: Ground) -> None:
    once = iter((False, True))
    prune_events(conn, WEEK, lambda: next(once))


def _relay(conn: Connection, _: Ground) -> None:
    outbox = PostgresOutbox(conn)
    outbox.next_pass()
    outbox.pending()
    outbox.due(20)
    outbox.fan_out_again(EVENT)
    outbox.failed_again(EVENT, 1, "no", 1.0)
    outbox.set_aside(3, "no", 1.0)


# What is done, and through which session.
DEEDS: Mapping[str, tuple[Use, Deed]] = {
    "claim": (Use.HOT, _claim),
    "complete": (Use.HOT, _complete),
    "settle": (Use.HOT, _settle),
    "rescue": (Use.HOT, _rescue),
    "held": (Use.HOT, _held),
    "expired": (Use.HOT, _expired),
    "promote": (Use.HOT, _promote),
    "keyed": (Use.HOT, _keyed),
    "by turns": (Use.HOT, _by_turns),
    "enqueue": (Use.HANDLER, _enqueue),
    "unique": (Use.HANDLER, _unique),
    "by hand": (Use.HANDLER, _by_hand),
    "wait": (Use.ANSWERS, _wait),
    "prune": (Use.HANDLER, _prune),
    "prune events": (Use.HANDLER, _prune_events),
    "relay": (Use.DURABLE, _relay),
    **ASIDE,
}
# Batches of retention and promotion are as large as the table lets them be, up to a bound.
BATCHES = ("prune", "prune events", "promote", *BOUNDED)


class Sessions:
    """A session for each deed, which keeps its plans, and what each did."""

    def __init__(self, url: str) -> None:
        self.ground = Ground(url)
        self._watches: dict[str, tuple[Connection, Watch]] = {}
        for name, (use, _) in DEEDS.items():
            conn = connect(url, "plans", use)
            self._watches[name] = conn, Watch(conn)

    def plans(self, name: str, times: int = 1) -> list[Plan]:
        """Do it, and undo it; what was done to do it."""
        conn, watch = self._watches[name]
        for _ in range(times):
            with watch.plans() as found:
                DEEDS[name][1](conn, self.ground)
        return found

    def fresh(self) -> None:
        """New sessions, with plans of their own."""
        self.close()
        number = self.ground.number
        self.__init__(self.ground.url)  # type: ignore[misc]  # the same thing, anew
        self.ground.number = number

    def close(self) -> None:
        for conn, _ in self._watches.values():
            conn.close()


@pytest.fixture
def sessions(database_url: str) -> Iterator[Sessions]:
    with connect(database_url, "world") as conn:
        declare(conn, load_app(APP))
        keep_statistics(conn)
    made = Sessions(database_url)
    yield made
    made.close()


def large(sessions: Sessions) -> frozenset[str]:
    """Tables that nobody should read whole, even who knows how large they are."""
    with connect(sessions.ground.url, "count") as conn:
        sizes = {t: conn.execute(f"select count(*) from weirkeeper.{t}").fetchone() for t in BIG}
    return frozenset(table for table, (rows,) in sizes.items() if rows >= LARGE)


def pages(sessions: Sessions, big: frozenset[str], why: str) -> dict[str, int]:
    """Every deed looks rows up; how many pages each touched."""
    found, bad = {}, []
    for name in DEEDS:
        plans = sessions.plans(name, 2)  # by then all is planned that was to be planned anew
        assert plans, name
        found[name] = sum(plan.pages for plan in plans)
        bad += [f"{name}: {said}: {plan.text}" for plan in plans for said in plan.bad(big)]
    assert not bad, f"{why}: " + "\n".join(dict.fromkeys(bad))
    return found


def fill(sessions: Sessions, number: int, *, analyze: bool) -> None:
    with connect(sessions.ground.url, "fill", Use.HANDLER) as conn:
        if not analyze:  # what truncates has plans made anew: none is old unless learnt after it
            tables = ", ".join(f"weirkeeper.{table}" for table in (*sorted(BIG), "running"))
            conn.execute(f"truncate {tables}")
            conn.execute("alter sequence weirkeeper.event_pending_seq restart")
            sessions.ground.number = 0
            sessions.fresh()
            learn(sessions)
            crowd(conn, number)
        if analyze:
            conn.execute("analyze")
    sessions.ground.number = number


def learn(sessions: Sessions) -> None:
    """Have every statement prepared and planned."""
    for name in DEEDS:
        sessions.plans(name, PREPARED)


def try_sizes(sessions: Sessions, *numbers: int) -> None:
    seen = {}
    for number in numbers:
        fill(sessions, number, analyze=False)
        seen[number, "old"] = pages(
            sessions, BIG, f"{number} rows, plans made while there was none"
        )
        fill(sessions, number, analyze=True)
        big = large(sessions)
        seen[number, "new"] = pages(sessions, big, f"{number} rows")
    sessions.fresh()
    learn(sessions)
    seen[number, "fresh"] = pages(sessions, big, f"{number} rows, other sessions")
    first = numbers[0]
    for (number, when), found in seen.items():
        for name in DEEDS.keys() - set(BATCHES):
            least = min(seen[first, w][name] for w in ("old", "new"))
            # An index is a page or two deeper for each row that is looked up.
            assert found[name] <= 3 * least + 100, (
                f"{name}: {least} → {found[name]} ({number}, {when})"
            )


@pytest.mark.timeout(300)
def test_plans_on_empty_and_small_tables(sessions: Sessions) -> None:
    try_sizes(sessions, SMALL, 10 * SMALL)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_plans_on_a_million_rows(sessions: Sessions) -> None:
    try_sizes(sessions, 10 * SMALL, 1_000_000)
