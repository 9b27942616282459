"""One process that serves several queues: each keeps to itself, all end together."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from shared.app import load_app
from shared.postgres.inspection.inspector import PostgresInspector
from shared.postgres.queues.catalog import declare
from tests.support.processes import Program, Programs
from tests.support.queue import TestQueue, children_of, server_of
from tests.support.waiting import until
from workers.upkeep import RECONCILE

APP = "tests.support.several_app:app"


class Several(TestQueue):
    """Starts one process for both queues."""

    def begin(self, **env: str) -> Program:
        program = self.start("b", queue="a", **env)  # `workers a b`
        until(lambda: len(children_of(program)) == 5, 20, "the children of both queues")
        return program


@pytest.fixture
def both(programs: Programs, database_url: str) -> Iterator[Several]:
    made = Several(programs, database_url)
    made.env["WEIRKEEPER_APP"] = APP
    declare(made.conn, load_app(APP))
    yield made
    made.conn.close()


def test_one_process_one_fork_server_one_row_for_all(both: Several) -> None:
    program = both.begin()
    jobs = [both.enqueue(f"{queue}_ok", {"result": n}) for n in range(20) for queue in "ab"]
    assert [both.final(job)["result"] for job in jobs] == [n for n in range(20) for _ in "ab"]
    assert {e["pid"] for job in jobs for e in both.effects(job)} <= children_of(program)
    rows = both.conn.execute(
        "select slot, queue, queues, children, connections, kinds from weirkeeper.process"
    ).fetchall()
    kinds = sorted(
        f"t.{queue}_{name}" for queue in "ab" for name in ("ok", "sleep", "stuck", "die")
    )
    assert rows == [("a-b", "a,b", {"a": 3, "b": 2}, 5, 5 + 5, kinds)]
    sessions = both.conn.execute(
        "select count(*) from pg_stat_activity where application_name like '%a-b%'"
    ).fetchone()
    assert sessions is not None
    assert sessions[0] <= 5 + 5


def test_a_queue_whose_children_are_all_stuck_holds_up_no_other(both: Several) -> None:
    both.begin()
    stuck = [both.enqueue("a_stuck") for _ in range(16)]
    until(lambda: sum(bool(both.effects(job)) for job in stuck) == 3, 20, "queue a is full")
    for _ in range(30):
        assert both.final(both.enqueue("b_ok"), 5)["outcome"] == "completed"
    assert sum(bool(both.effects(job)) for job in stuck) == 3
    explained = PostgresInspector(both.conn).explain(stuck[-1])
    assert "3 of 3 children are busy" in explained.sentence


@pytest.mark.slow
def test_each_queue_runs_as_many_jobs_as_it_has_children(both: Several) -> None:
    both.begin()
    jobs = {q: [both.enqueue(f"{q}_sleep", {"seconds": 30}) for _ in range(6)] for q in "ab"}
    begun = lambda q: sum(bool(both.effects(job)) for job in jobs[q])  # noqa: E731
    until(lambda: (begun("a"), begun("b")) == (3, 2), 20, "both are full")
    inspector = PostgresInspector(both.conn)
    [first, *_] = [job for job in jobs["b"] if both.effects(job)]
    inspector.cancel(first)
    assert both.final(first)["state"] == "cancelled"
    until(lambda: begun("b") == 3, 20, "the next of its queue begins")
    assert begun("a") == 3
    assert all(both.outcomes(job) == [] for job in jobs["a"])


def test_a_drain_waits_for_all_and_leaves_one_row(both: Several) -> None:
    program = both.begin(WEIRKEEPER_DRAIN_SECONDS="4")
    short = {q: both.enqueue(f"{q}_sleep", {"seconds": 1.5}) for q in "ab"}
    long = both.enqueue("b_sleep", {"seconds": 60})
    for job in (*short.values(), long):
        both.begun(job)
    more = [both.enqueue("b_sleep", {"seconds": 60}) for _ in range(3)]
    began = time.monotonic()
    assert program.terminate() == 0
    assert time.monotonic() - began < 15  # 4 + grace, not once a queue
    assert [both.outcomes(job) for job in short.values()] == [["completed"], ["completed"]]
    assert both.outcomes(long) == ["interrupted"]
    assert all(both.where(job) == ["ready"] for job in (long, *more))
    rows = both.conn.execute("select queue, phases, jobs from weirkeeper.drain").fetchall()
    assert [row[0] for row in rows] == ["a,b"]
    assert set(rows[0][1]) == {"give_back", "wait", "interrupt", "flush"}
    assert (rows[0][2]["finished"], rows[0][2]["interrupted"]) == (2, 1)


def test_the_death_of_the_process_or_its_fork_server_costs_no_queue_its_jobs(both: Several) -> None:
    program = both.begin()
    first = {q: both.enqueue(f"{q}_sleep", {"seconds": 3}) for q in "ab"}
    for job in first.values():
        both.begun(job)
    os.kill(server_of(program), signal.SIGKILL)
    for job in first.values():
        last = both.final(job, 30)
        assert both.outcomes(job) == ["interrupted", "completed"]
        assert last["attempt"] == 1
    second = {q: both.enqueue(f"{q}_sleep", {"seconds": 3}) for q in "ab"}
    for job in second.values():
        both.begun(job)
    program.send(signal.SIGKILL)
    program.wait(10)
    both.begin()
    for job in second.values():
        both.final(job, 30)
        assert both.outcomes(job) == ["rescued", "completed"]


def test_a_crash_in_one_queue_is_of_that_queue(both: Several) -> None:
    both.begin()
    sibling = both.enqueue("a_sleep", {"seconds": 2})
    both.begun(sibling)
    crashed = both.enqueue("b_die")
    assert both.final(crashed, 30)["state"] == "discarded"
    assert both.outcomes(crashed) == ["crashed"] * 3
    both.final(sibling)
    assert both.outcomes(sibling) == ["completed"]


@pytest.mark.slow
def test_what_one_queue_holds_is_not_given_back_by_the_other(both: Several) -> None:
    program = both.begin()
    jobs = [both.enqueue(f"{q}_sleep", {"seconds": RECONCILE + 3}) for q in "ab"]
    for job in jobs:
        assert both.final(job, RECONCILE + 20)["outcome"] == "completed"
        assert len(both.effects(job)) == 1
    assert "never heard of" not in program.text()


def test_a_check_tells_of_each_queue_and_refuses_one_twice(both: Several) -> None:
    program = both.programs.start("workers", "a", "b", "--check", env=both.env)
    assert program.wait(30) == 0
    told = json.loads(program.text())
    assert told["slot"] == "a-b"
    assert [(one["queue"]["name"], one["queue"]["children"]) for one in told["queues"]] == [
        ("a", 3),
        ("b", 2),
    ]
    for names, said in (
        (("a", "b", "a"), "expected each once; got 'a b a'"),
        (("a", "x"), "got 'x'"),
    ):
        program = both.programs.start("workers", *names, env=both.env)
        assert program.wait(30) == 78
        assert said in program.text()
