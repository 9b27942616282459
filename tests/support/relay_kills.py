"""A relay that is killed at a chosen point of its pass, again and again, while events are recorded.

A pass is one statement, so the points before its commit lie inside Postgres: triggers stop the
victim's session on an advisory lock, which the test holds while it kills the victim. The points after
the commit are failpoints of the program. What becomes of a session whose relay is dead is left to
chance: it goes on to its commit, or it is ended.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import psycopg

from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.connect import connect
from shared.postgres.inspection.verify import violations
from shared.postgres.queues.catalog import declare
from tests.support.nursery import Nursery
from tests.support.outbox import APP
from tests.support.processes import Programs
from tests.support.waiting import until

# Where, and (for the triggers) which lock stops it there.
IN_POSTGRES = {"claimed": 1, "inserted": 2, "stamped": 3, "before_commit": 4}
IN_THE_PROGRAM = {"committed": "relay_passed", "announced": "relay_announced"}
POINTS = (*IN_POSTGRES, *IN_THE_PROGRAM)
LOCKS = 77_000_001
PASSES = "application_name like 'weirkeeper victim-% passes' and datname = current_database()"
TRIGGERS = """
create function stop_here() returns trigger language plpgsql as $$
begin
  if current_setting('application_name') like 'weirkeeper victim-% passes' then
    perform pg_advisory_xact_lock_shared(77000001, tg_argv[0]::integer);
  end if;
  return coalesce(new, old);
end $$;
create trigger claimed before delete on weirkeeper.event_pending
  for each row execute function stop_here(1);
create trigger inserted_job before insert on weirkeeper.job
  for each row when (new.args ->> 'subject' like '%!') execute function stop_here(2);
create trigger inserted_ready before insert on weirkeeper.ready
  for each row when (new.job_id % 7 = 0) execute function stop_here(2);
create trigger stamped after insert on weirkeeper.event_fanout
  for each row execute function stop_here(3);
create constraint trigger before_commit after insert on weirkeeper.event_fanout
  deferrable initially deferred for each row execute function stop_here(4);
"""
RECORD = """
insert into weirkeeper.event (type, subject)
select (array['order.paid', 'order.line.added', 'quiet'])[1 + i %% 3],
       'order/' || i %% 4 || case when i = %s then '!' else '' end
from generate_series(1, %s) i returning id::text, type
"""
WRONG = """
select 'event without fan-out', count(*) from weirkeeper.event e
where not exists (select from weirkeeper.event_fanout f where f.event_id = e.id)
union all
select 'not one job for each', count(*) from (
  select e.id, r.subscription from weirkeeper.event e
  join weirkeeper.route r on r.type = e.type and not r.coalesce
    and not r.endpoints  -- nobody has an endpoint
  left join weirkeeper.job j on j.event_id = e.id and j.kind = r.subscription
  group by e.id, r.subscription having count(j.id) <> 1) x
union all
select 'merged, but named otherwise', count(*) from weirkeeper.event e
join weirkeeper.route r on r.type = e.type and r.coalesce
join weirkeeper.event_fanout f on f.event_id = e.id
left join weirkeeper.job j on j.id = (f.jobs ->> r.subscription)::bigint
where j.id is null or j.args ->> 'subject' <> e.subject
union all
select 'a merged job that no event names', count(*) from weirkeeper.job j
where j.kind = 'total' and not exists (
  select from weirkeeper.event_fanout f where (f.jobs ->> 'total')::bigint = j.id)
"""


class Killing:
    """One database, victims, a second relay now and then, and what was recorded.

    Args:
        programs: whose environment the relays get.
        url: of the database.
        folder: of logs and files.
        seed: of chance.
    """

    def __init__(self, programs: Programs, url: str, folder: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.conn: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self.holder: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        with connect(url, "tests") as session:
            declare(session, APP)
        self.conn.execute(TRIGGERS)
        app = {"WEIRKEEPER_APP": "tests.support.outbox:APP"}
        self.nursery = Nursery({**programs.environment, **app}, folder)
        self.waits = PostgresWaits(url, "waiting")
        self.folder = folder
        self.kills = self.lives = 0
        self.second = 0
        self.unanswered: list[str] = []

    def close(self) -> None:
        """End everything."""
        self.nursery.close()
        self.waits.close()
        self.conn.close()
        self.holder.close()

    def kill_at(self, point: str) -> None:
        """One round: events, a victim, its death at the point; with a second relay or without."""
        before, during = self.chance.random() < 0.3, self.chance.random() < 0.3
        self._have_second(before)
        event = self._record()
        if point in IN_POSTGRES:
            self._kill_in_postgres(IN_POSTGRES[point], during=during)
        else:
            self._kill_in_the_program(IN_THE_PROGRAM[point], during=during)
        self.kills += 1
        self.unanswered.append(event)
        if self.second:
            self._expect_answers()

    def _expect_answers(self) -> None:
        """Whoever waits for an event is answered although its relay was killed."""
        for event in self.unanswered:
            assert self.waits.await_fanout(event, "audit", 20), (event, self.kills)
        self.unanswered.clear()

    def _have_second(self, wanted: bool) -> None:
        if wanted and not self.second:
            self.lives += 1
            self.second = self.nursery.start("relay.main", "--slot", f"second-{self.lives % 4}")
        elif not wanted and self.second:
            self.nursery.kill(self.second)
            self.second = 0

    def _record(self) -> str:
        """Some events in one transaction; one that has subscribers."""
        count = self.chance.randint(3, 30)
        rows = self.conn.execute(RECORD, (self.chance.randint(1, count), count)).fetchall()
        return self.chance.choice([event for event, kind in rows if kind != "quiet"])

    def _victim(self, failpoints: str = "") -> int:
        self.lives += 1
        slot = f"victim-{self.lives % 8}"
        env = {"TEST_FAILPOINTS": failpoints}
        return self.nursery.start("relay.main", "--slot", slot, env=env)

    def _kill_in_postgres(self, lock: int, *, during: bool) -> None:
        held = (LOCKS, lock)
        self.holder.execute("select pg_advisory_lock(%s, %s)", held)
        victim = self._victim()
        until(lambda: self._stopped(victim), 30, "the victim has come to the point")
        if during:
            self._have_second(True)
        self.nursery.kill(victim)
        if self.chance.random() < 0.5:
            self.conn.execute(
                f"select pg_terminate_backend(pid) from pg_stat_activity where {PASSES}"
            )
        self.holder.execute("select pg_advisory_unlock(%s, %s)", held)
        until(lambda: not self._sessions(), 30, "its session has ended")

    def _stopped(self, victim: int) -> bool:
        """Whether it waits at the point; where another relay was faster, there is more to take."""
        assert self.nursery.lives(victim), "the victim ended by itself"
        row = self.conn.execute(
            "select exists (select from pg_locks where locktype = 'advisory' and not granted"
            " and classid = %s and database = (select oid from pg_database"
            " where datname = current_database())),"
            " exists (select from weirkeeper.event_pending)",
            (LOCKS,),
        ).fetchone()
        assert row is not None
        if not row[0] and not row[1]:
            self._record()
        return bool(row[0])

    def _sessions(self) -> bool:
        row = self.conn.execute(f"select 1 from pg_stat_activity where {PASSES}").fetchone()
        return row is not None

    def _kill_in_the_program(self, name: str, *, during: bool) -> None:
        file = self.folder / f"go-{self.kills}"
        victim = self._victim(f"{name}=pause:{file}" if during else f"{name}=kill")
        if during:
            until(file.with_name(f"{file.name}.hit").exists, 30, "the victim has come to the point")
            self._have_second(True)
            self.nursery.kill(victim)
        until(lambda: not self.nursery.lives(victim), 30, "the victim is dead")

    def settle(self) -> None:
        """Let a healthy relay do the rest; nothing may be lost, doubled or left unanswered."""
        self._have_second(True)
        until(self._settled, 60, "everything is fanned out")
        self._expect_answers()
        assert dict(self.conn.execute(WRONG).fetchall()) == dict.fromkeys(
            ("event without fan-out", "not one job for each", "merged, but named otherwise",
             "a merged job that no event names"), 0)  # fmt: skip
        assert self.conn.execute("select count(*) from weirkeeper.event_failure").fetchone() == (0,)
        assert violations(self.conn, 86_400.0) == []

    def _settled(self) -> bool:
        row = self.conn.execute(
            "select not exists (select from weirkeeper.event_pending)"
        ).fetchone()
        return bool(row and row[0])
