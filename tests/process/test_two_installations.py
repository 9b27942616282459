"""Two installations in one database, with real processes: each does its own work and no other's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.statements import lock_class
from tests.support.app import EFFECTS
from tests.support.flow import answer, cli
from tests.support.installations import SECOND
from tests.support.processes import Program, Programs
from tests.support.queue import APP
from tests.support.waiting import until

FIRST = "weirkeeper"
HERE = "database = (select oid from pg_database where datname = current_database())"
# Locks A and S of every sleeper in this database, by class.
ASLEEP = f"""
    select classid::bigint, count(*) from pg_locks
    where locktype = 'advisory' and granted and mode = 'ExclusiveLock' and {HERE} group by 1"""
WAITS = """
import sys, weirkeeper
with weirkeeper.Waits(sys.argv[1], "app") as waits:
    print(waits.wait(sys.argv[2], 30).state)
"""


@dataclass
class Side:
    """One of the two: its schema, its programs, its effects."""

    schema: str
    programs: Programs
    env: dict[str, str]
    conn: psycopg.Connection[Any]

    def migrate(self) -> None:
        program = cli(self.programs, "migrate", env=self.env)
        assert program.wait(120) == 0, program.text()

    def start(self) -> None:
        for module, *arguments in (("relay",), ("workers", "t", "--slot", "t")):
            self.programs.start(module, *arguments, env=self.env)

    def count(self, table: str) -> int:
        return self.one(f"select count(*) from {self.schema}.{table}")

    def one(self, query: str, *params: Any) -> Any:
        row = self.conn.execute(query, params).fetchone()
        return row[0] if row else None

    def enqueue(self, kind: str = "t.ok") -> int:
        return self.one(f"select {self.schema}.enqueue(%s)", kind)

    def record(self, subject: str) -> str:
        return self.one(
            f"select {self.schema}.record_event('t.happened', subject => %s)::text", subject
        )

    def state(self, job: int) -> Any:
        return self.one(
            f"select state from {self.schema}.attempt where job_id = %s order by run desc limit 1",
            job,
        )

    def jobs_of(self, event: str) -> Any:
        return self.one(f"select jobs from {self.schema}.event_fanout where event_id = %s", event)

    def ran(self) -> set[str]:
        """Ids of the jobs that this side's children began."""
        path = Path(self.env[EFFECTS])
        lines = path.read_text().splitlines() if path.exists() else []
        return {entry["job"] for entry in map(json.loads, lines) if entry["what"] == "begin"}

    def ready(self) -> bool:
        found = self.conn.execute(
            f"select slot from {self.schema}.process where phase = 'ready'"
        ).fetchall()
        return {row[0] for row in found} == {"relay", "t"}

    def command(self, *arguments: str) -> Program:
        program = cli(self.programs, *arguments, env=self.env)
        program.wait(60)
        return program


@pytest.fixture
def sides(empty_database_url: str, short_tmp: Path) -> Iterator[tuple[Side, Side]]:
    made = []
    with psycopg.connect(empty_database_url, autocommit=True) as conn:
        for schema in (FIRST, SECOND):
            home = short_tmp / schema
            home.mkdir()
            env = {
                "WEIRKEEPER_SCHEMA": schema,
                "WEIRKEEPER_APP": APP,
                EFFECTS: str(home / "effects"),
            }
            made.append(Side(schema, Programs(home, empty_database_url), env, conn))
        yield made[0], made[1]
        for side in made:
            side.programs.close()


def work_side_by_side(sides: tuple[Side, Side]) -> None:
    """Ids are each side's own, so both have a job of that number; each child runs its own side's."""
    first, second = sides
    jobs = {side.schema: [side.enqueue() for _ in range(20)] for side in sides}
    events = {side.schema: [side.record(str(n)) for n in range(20)] for side in sides}
    for side in sides:
        until(
            lambda s=side: all(s.state(job) == "completed" for job in jobs[s.schema]),
            30,
            "jobs ran",
        )
        until(lambda s=side: all(map(s.jobs_of, events[s.schema])), 30, "events are fanned out")
        fanned = [int(j) for e in events[side.schema] for j in side.jobs_of(e).values()]
        until(
            lambda s=side, f=fanned: all(s.state(job) == "completed" for job in f), 30, "they ran"
        )
        assert side.ran() >= set(map(str, jobs[side.schema]))
    assert first.count("job") == 40
    assert second.count("job") == 42
    assert first.ran() == {str(n) for n in range(1, 41)}


def ask_each(sides: tuple[Side, Side], url: str) -> None:
    """What is asked of one is answered from it: waits, status, verify, lists."""
    first, second = sides
    later = second.one(f"select {SECOND}.enqueue('t.ok', run_at => now() + interval '1 day')")
    with PostgresWaits(url, "app") as waits:
        assert waits.wait("1", 5).state == "completed"
    waiter = second.programs.execute([sys.executable, "-P", "-c", WAITS, url, "1"], second.env)
    assert waiter.wait(60) == 0, waiter.text()
    assert waiter.text().strip() == "completed"
    for side in sides:
        verified = side.command("verify")
        assert verified.popen.returncode == 0, verified.text()
        shown = answer(side.programs, "jobs", "list", "--state", "pending", env=side.env)
        assert [job["id"] for job in shown] == ([] if side is first else [str(later)])
        epochs = side.one(f"select array_agg(epoch order by epoch) from {side.schema}.process")
        assert epochs == [1, 2]


@pytest.mark.timeout(300)
def test_side_by_side(sides, empty_database_url):
    for side in sides:
        side.migrate()
        side.start()
    until(lambda: all(side.ready() for side in sides), 60, "both are ready")
    first, second = sides

    # Each sleeps under locks of its own, so that one's writers wake the other's processes never.
    until(
        lambda: (
            dict(first.conn.execute(ASLEEP).fetchall())
            == {lock_class(side.schema): 4 for side in sides}
        ),
        30,
        "relay and queue process of both sleep",
    )
    with psycopg.connect(empty_database_url, autocommit=True) as ear:
        for name in ("relay", "final", "fanout", f"queue_{_number(first)}"):
            ear.execute(f"listen {FIRST}_{name}")
            ear.execute(f"listen {SECOND}_{name}")
        job, event = second.enqueue(), second.record("a")
        until(lambda: second.state(job) == "completed", 20, "the second's job has run")
        until(lambda: second.jobs_of(event), 20, "the second's event is fanned out")
        heard = {notice.channel for notice in ear.notifies(timeout=0.5)}
    assert heard
    assert all(channel.startswith(f"{SECOND}_") for channel in heard)
    assert first.count("job") == first.count("event") == 0

    work_side_by_side(sides)
    ask_each(sides, empty_database_url)


def test_one_goes_and_the_other_stays(sides):
    first, second = sides
    for side in sides:
        side.migrate()
    assert second.one("select count(*) from second_one_site.note") == 0
    first.conn.execute("drop schema weirkeeper cascade")
    first.conn.execute("drop schema site cascade")
    job = second.enqueue()
    assert second.one(f"select kind from {SECOND}.ready where job_id = %s", job) == "t.ok"
    assert second.command("verify").popen.returncode == 0


def test_a_word_of_sql_is_refused(sides):
    _, second = sides
    second.env["WEIRKEEPER_SCHEMA"] = "select"
    refused = second.command("migrate")
    assert refused.popen.returncode == 78
    assert "WEIRKEEPER_SCHEMA: expected a name that is no word of SQL" in refused.text()


def _number(side: Side) -> int:
    return side.one(f"select no from {side.schema}.queue where name = 't'")


@pytest.mark.parametrize("module", ["relay", "workers", "listener", "metrics", "weirkeeper.server"])
def test_a_name_that_cannot_work_is_one_line(sides, module):
    first, _ = sides
    program = first.programs.start(
        module, *(["t"] if module == "workers" else []), env={"WEIRKEEPER_SCHEMA": "Bad"}
    )
    assert program.wait(30) == 78
    assert program.text().count("\n") == 1
    assert "WEIRKEEPER_SCHEMA: expected a name" in program.text()
