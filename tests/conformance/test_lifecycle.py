"""Clauses 23, 24, 27 and 29: periodic jobs, declarations, and a job that follows another."""

from __future__ import annotations

import statistics
from datetime import datetime

import pytest

from shared.app import App
from shared.errors import ConfigurationError, NotFound
from tests.conformance.engines import Bench
from tests.support.waiting import pause
from weirkeeper import Kind, Periodic, Queue, Rate

HANDLER = "tests.support.app:ok"
OK = Kind("a.ok", "index", HANDLER)


def _often(bench: Bench):
    [seen] = [s for s in bench.inspector.periodic() if s.name == "c.often"]
    return seen


def test_23_a_periodic_runs_at_start_and_its_record_survives_a_new_runtime(bench: Bench) -> None:
    first = bench.engine.until(lambda: [*_often(bench).starts], "the first tick has started")[-1]
    bench.final(first.id)
    before = bench.engine.until(
        lambda: (seen := _often(bench)).last_result == "completed" and seen, "its end is recorded"
    )
    assert (before.kind, before.schedule) == ("c.tick", "every 3600 s")
    assert bench.inspector.get(first.id).args == {"n": 1}
    assert bench.inspector.get(first.id).max_attempts == 1
    bench.engine.again()
    again = Bench(bench.engine)
    again.final(again.enqueue("ok"))
    after = _often(again)
    assert (after.last_started_at, after.next_at) == (before.last_started_at, before.next_at)
    assert [job.id for job in after.starts] == [job.id for job in before.starts]


def test_24_run_now_adds_a_run_and_an_unknown_name_errors(bench: Bench) -> None:
    bench.engine.until(lambda: [*_often(bench).starts], "the first tick has started")
    before = _often(bench)
    job = bench.inspector.run_periodic("c.often")
    assert bench.final(job).kind == "c.tick"
    after = _often(bench)
    assert after.next_at == before.next_at
    assert [job, *(j.id for j in before.starts)][:5] == [j.id for j in after.starts]
    with pytest.raises(NotFound, match=r"no\.such"):
        bench.inspector.run_periodic("no.such")


BAD = {
    "an empty name": lambda: Kind("", "index", HANDLER),
    "a name that is none": lambda: Kind("A b", "index", HANDLER),
    "no handler": lambda: App(kinds=(Kind("a.b", "index"),)).check(),
    "a handler and a command": lambda: Kind("a.b", "index", HANDLER, command=["true"]),
    "no attempt": lambda: Kind("a.b", "index", HANDLER, max_attempts=0),
    "no time": lambda: Kind("a.b", "index", HANDLER, timeout=0),
    "no concurrency": lambda: Kind("a.b", "index", HANDLER, max_per_key=0),
    "no cap": lambda: Queue("q", cap=0),
    "no rate": lambda: Rate(0),
    "no period": lambda: Rate(1, per=0),
    "a rate that is a number": lambda: Kind("a.b", "index", HANDLER, rate=3),  # type: ignore[arg-type]
    "keys that are no tuple": lambda: Kind("a.b", "index", HANDLER, searchable="id"),
    "an unknown queue": lambda: App(kinds=(Kind("a.b", "nowhere", HANDLER),)).check(),
    "a kind twice": lambda: App(kinds=(OK, OK)).check(),
    "every and cron": lambda: Periodic("a.p", "a.ok", every=60, cron="* * * * *"),
    "neither every nor cron": lambda: Periodic("a.p", "a.ok"),
    "too often": lambda: Periodic("a.p", "a.ok", every=0.5),
    "a cron that is none": lambda: Periodic("a.p", "a.ok", cron="61 * * * *"),
    "no such time zone": lambda: Periodic("a.p", "a.ok", cron="1 * * * *", timezone="Mars/Base"),
    "a periodic of no kind": lambda: App(periodics=(Periodic("p", "a.no", every=60),)).check(),
    "a periodic twice": lambda: App(
        kinds=(OK,), periodics=(Periodic("p", "a.ok", every=60),) * 2
    ).check(),
}


@pytest.mark.parametrize("declared", BAD)
def test_27_a_declaration_that_cannot_work_is_refused(declared: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expected .* got"):
        BAD[declared]()


def test_29_a_job_5_ms_after_another_is_picked_up_without_a_poll(bench: Bench) -> None:
    ages = []
    for _ in range(9):
        bench.enqueue("ok")
        pause(0.005, "the process is between claiming and falling asleep")
        second = bench.final(bench.enqueue("ok"))
        created = datetime.fromisoformat(second.created_at)
        claimed = datetime.fromisoformat(second.attempts[0].claimed_at or "")
        ages.append((claimed - created).total_seconds())
    assert statistics.median(ages) < 0.25  # a poll would come after half a second, in the middle
