"""Stops of a whole stack under supervisord while every queue works, whoever asks and however."""

from __future__ import annotations

import json
import signal
import sys
import time

import psycopg
import pytest

from shared.app import load_app
from shared.config.queues import QUEUES
from shared.jobs.port import EnqueueOpts
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import connect
from shared.postgres.queues.catalog import declare
from tests.support.app import EFFECTS
from tests.support.bounds import at_most
from tests.support.flow import cli
from tests.support.processes import ROOT
from tests.support.queue import alive
from tests.support.waiting import until

APP = "tests.support.every_queue:app"
CONFIGURATION = str(ROOT / "supervisord.conf")
SUPERVISOR = [sys.executable, "-P", "-m"]
READY = "select count(*) from weirkeeper.process where phase = 'ready'"
WHOLE = 30.0  # seconds that a stop of everything may take, on an idle machine
SLACK = 10.0  # seconds that a slow machine may add to it
SWEPT = at_most(2, busy=10)  # seconds after a child that what it started may live
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


class Stack:
    """Everything under a plain supervisord, with a job of some length in every queue."""

    def __init__(self, programs, url, processes=8):
        for name in ("run", "log"):
            (programs.home / name).mkdir(mode=0o700)
        programs.environment |= {
            "WEIRKEEPER_APP": APP,
            "WEIRKEEPER_PYTHON": sys.executable,
            EFFECTS: str(programs.home / "effects"),
        }
        self.programs, self.url, self.processes = programs, url, processes
        with connect(url, "test") as conn:
            declare(conn, load_app(APP))
        self.supervisord = self.run("supervisor.supervisord", "-c", CONFIGURATION)
        self.until_ready()

    def run(self, module, *arguments):
        return self.programs.execute([*SUPERVISOR, module, *arguments])

    def ctl(self, *arguments, code=0):
        program = self.run("supervisor.supervisorctl", "-c", CONFIGURATION, *arguments)
        assert program.wait(90) == code, program.text()
        return program.text()

    def ask(self, statement, *params):
        with psycopg.connect(self.url, autocommit=True) as conn:
            return conn.execute(statement, params or None).fetchall()

    def until_ready(self, beyond=0):
        ready = f"{READY} and epoch > %s"
        expected = [(self.processes,)]
        until(lambda: self.ask(ready, beyond) == expected, 90, "all processes are ready")

    def fork(self, **opts):
        """A job that starts two programs, one in a session of its own: (job, child, the programs)."""
        with connect(self.url, "test") as conn:
            job = PostgresJobs(conn).enqueue("fork.index", {}, EnqueueOpts(**opts))
        until(lambda: job in self.effects("begin"), 30, "the job has started its programs")
        [begun] = [e for e in self.entries() if e["job"] == job]
        assert all(map(alive, [begun["pid"], *begun["programs"]]))
        return job, begun["pid"], begun["programs"]

    def entries(self):
        lines = (self.programs.home / "effects").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def status(self):
        program = cli(self.programs, "status")
        program.wait(60)
        return program.text()

    def newest(self):
        [(epoch,)] = self.ask("select max(epoch) from weirkeeper.process")
        return epoch

    def begin(self, seconds):
        """One job in every queue, and all of them run."""
        with connect(self.url, "test") as conn:
            jobs = [
                PostgresJobs(conn).enqueue(
                    f"long.{queue.name}", {"seconds": seconds}, EnqueueOpts()
                )
                for queue in QUEUES
            ]
        until(lambda: set(jobs) <= self.effects("begin"), 30, "every job runs")
        return jobs

    def effects(self, what):
        try:
            return {e["job"] for e in self.entries() if e["what"] == what}
        except FileNotFoundError:
            return set()

    def outcomes(self, jobs):
        rows = self.ask(
            "select job_id::text, array_agg(outcome order by run) from weirkeeper.attempt"
            " where job_id = any (%s::bigint[]) group by 1",
            [int(job) for job in jobs],
        )
        return dict(rows)

    def runs(self, jobs):
        """How often each began."""
        begun = [e["job"] for e in self.entries() if e["what"] == "begin"]
        return {begun.count(job) for job in jobs}

    def all_completed(self, jobs):
        return self.outcomes(jobs) == {job: ["completed"] for job in jobs}


@pytest.fixture
def stack(programs, database_url):
    return Stack(programs, database_url)


@pytest.fixture
def spare(programs, database_url):
    """A stack with a second slot of index that nobody has started yet, and two of fetch."""
    (programs.home / "conf").mkdir()
    shipped = (ROOT / "supervisord.conf").read_text()
    more = "[group:queues]\nprograms=index,notify,webhook,maintenance,fetch,index-2\n"
    for name, slot, extra in (
        ("index", "index-2", "autostart=false\n"),
        ("fetch", "fetch-%(process_num)s", "numprocs=%(ENV_FETCHERS)s\n"),
    ):
        begin = shipped.index(f"[program:{name}]")
        section = shipped[begin : shipped.index("\n\n", begin) + 1]
        section = section.replace("%(here)s", str(ROOT))
        section = section.replace(f"workers {name}", f"workers {name} --slot {slot}")
        if name == "fetch":
            section += "process_name=%(program_name)s-%(process_num)s\n"
        else:
            section = section.replace("[program:index]", "[program:index-2]")
        more += section + extra
    (programs.home / "conf" / "more.conf").write_text(more)
    programs.environment["FETCHERS"] = "2"
    return Stack(programs, database_url, processes=9)


@pytest.mark.soak
def test_a_queue_gets_more_processes_by_number_and_by_a_spare_slot(spare):
    checked = cli(spare.programs, "check", "--supervisord")
    assert checked.wait(90) == 0, checked.text()
    assert "2 x index (3 + 4 children) 14" in checked.text()  # the spare one counts
    assert "2 x fetch (3 + 3 children) 12" in checked.text()
    assert "fetch 6 (2 processes)" in spare.status()
    before = spare.ask("select slot, epoch from weirkeeper.process where phase = 'ready'")
    spare.ctl("start", "queues:index-2")
    until(lambda: "index 8 (2 processes)" in spare.status(), 60, "it works, too")
    jobs = spare.begin(3)
    spare.ctl("stop", "queues:index-2")  # alone; the others were never touched
    after = spare.ask("select slot, epoch from weirkeeper.process where phase = 'ready'")
    assert sorted(after) == sorted(before)
    until(lambda: spare.all_completed(jobs), 60, "every job completed")
    assert spare.supervisord.terminate(90) == 0


def test_sigterm_while_every_queue_has_a_job_of_18_seconds(stack):
    jobs = stack.begin(18)
    began = time.monotonic()
    stack.supervisord.send(signal.SIGTERM)
    assert stack.supervisord.wait(90) == 0
    assert time.monotonic() - began < WHOLE + SLACK
    assert stack.all_completed(jobs), stack.outcomes(jobs)
    order = [role for (role,) in stack.ask(
        "select role from weirkeeper.process where phase = 'stopped' order by beat_at"
    )]  # fmt: skip
    assert order == ["relay", *["queue"] * 5, "listener", "metrics"]
    assert "killing" not in stack.supervisord.text()
    until(lambda: not stack.programs.living(), 15, "everything has ended")


@pytest.mark.soak
def test_a_reload_finishes_what_runs_and_starts_everything_anew(stack):
    jobs, before = stack.begin(18), stack.newest()
    stack.ctl("reload")
    stack.until_ready(beyond=before)
    assert stack.all_completed(jobs), stack.outcomes(jobs)
    assert stack.supervisord.terminate(90) == 0


@pytest.mark.soak
def test_stop_all_at_once_loses_nothing(stack):
    jobs = stack.begin(18)
    began = time.monotonic()
    stack.ctl("stop", "all")
    assert time.monotonic() - began < WHOLE + SLACK
    assert stack.all_completed(jobs), stack.outcomes(jobs)
    before = stack.newest()
    stack.ctl("start", "all")
    stack.until_ready(beyond=before)
    assert stack.supervisord.terminate(90) == 0


@pytest.mark.soak
def test_three_queues_by_name_stop_together(stack):
    jobs = stack.begin(18)
    began = time.monotonic()
    stack.ctl("stop", "queues:index", "queues:notify", "queues:fetch")
    assert time.monotonic() - began < WHOLE + SLACK
    left = set(stack.ask("select slot from weirkeeper.process where phase = 'ready'"))
    assert left == {(slot,) for slot in ("relay", "webhook", "maintenance", "listener", "metrics")}
    until(lambda: stack.all_completed(jobs), 30, "the other two go on and end as well")
    assert stack.runs(jobs) == {1}
    assert stack.supervisord.terminate(90) == 0


@pytest.mark.soak
def test_jobs_longer_than_the_drain_are_interrupted_and_run_again_elsewhen(stack):
    jobs, before = stack.begin(40), stack.newest()
    began = time.monotonic()
    stack.ctl("restart", "queues:*")
    assert time.monotonic() - began < 2 * WHOLE
    until(
        lambda: stack.ask(f"{READY} and role = 'queue' and epoch > %s", before) == [(5,)],
        90,
        "the queues are ready again",
    )
    assert {tuple(found) for found in stack.outcomes(jobs).values()} == {("interrupted",)}
    until(lambda: stack.runs(jobs) == {2}, 30, "each runs again")
    assert stack.supervisord.terminate(90) == 0


@pytest.mark.parametrize(
    "drain", [pytest.param("", id="default", marks=pytest.mark.soak), pytest.param("2", id="2 s")]
)
def test_what_jobs_started_ends_with_a_timeout_and_with_a_stop(programs, database_url, drain):
    programs.environment["WEIRKEEPER_DRAIN_SECONDS"] = drain
    stack = Stack(programs, database_url)
    timed, _, started = stack.fork(timeout=1.0)
    until(lambda: stack.outcomes([timed]) == {timed: ["timeout"]}, 30, "its time is over")
    until(lambda: not any(map(alive, started)), SWEPT, "both programs are gone")
    stopped, child, started = stack.fork()
    began = time.monotonic()
    stop = stack.run("supervisor.supervisorctl", "-c", CONFIGURATION, "stop", "queues:index")
    until(lambda: not alive(child), WHOLE, "the child is gone")
    until(lambda: not any(map(alive, started)), SWEPT, "both programs are gone")
    assert time.monotonic() - began < at_most(26, busy=26 + SLACK)
    assert stop.wait(WHOLE) == 0, stop.text()
    assert stack.outcomes([stopped]) == {stopped: ["interrupted"]}
    stack.ctl("stop", "all")
    until(lambda: stack.programs.living() == [stack.supervisord.pid], 10, "nothing else is left")
    assert stack.supervisord.terminate(90) == 0


def test_the_drain_command_stops_the_relay_first_then_the_queues_together(stack):
    jobs = stack.begin(6)
    program = cli(stack.programs, "drain", "--json")
    assert program.wait(90) == 0, program.text()
    assert stack.all_completed(jobs), stack.outcomes(jobs)
    text = program.text()
    told = json.loads(text[text.index("{") :])
    assert told["killed"] == []
    slots = [stop["slot"] for stop in sorted(told["stops"], key=lambda stop: stop["finished_at"])]
    assert slots[0] == "relay"
    assert sorted(slots[1:]) == sorted(queue.name for queue in QUEUES)
    begun = [stop["started_at"] for stop in told["stops"] if stop["role"] == "queue"]
    ended = [stop["finished_at"] for stop in told["stops"] if stop["role"] == "queue"]
    assert max(begun) < min(ended), "they drain side by side"
    living = {role for (role,) in stack.ask(
        "select role from weirkeeper.process where phase = 'ready'"
    )}  # fmt: skip
    assert living == {"listener", "metrics"}
    assert stack.supervisord.terminate(90) == 0
