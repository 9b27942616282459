"""`weirkeeper events` on running programs: looked at, requeued, replayed while its worker is killed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from shared.postgres.driver.connect import connect
from shared.postgres.inspection.verify import violations
from shared.postgres.queues.catalog import declare
from tests.support.flow import Flow, answer, cli
from tests.support.outbox import APP, refuse_jobs
from tests.support.processes import ROOT, Programs
from tests.support.waiting import until

DECLARED = {"WEIRKEEPER_APP": "tests.support.outbox:APP"}
ORDERS = {"WEIRKEEPER_APP": "orders:app", "PYTHONPATH": str(ROOT / "docs" / "examples")}
EVENTS = 900  # of the replayed type: four batches and a half
EVER = ("--since", "2020-01-01T00:00:00Z", "--until", "2100-01-01T00:00:00Z")
RECORD = (
    "insert into weirkeeper.event (type, subject)"
    " select %s, 'order/' || i from generate_series(1, %s) i"
)
LOCK = 77_000_002
# The worker stops in its third batch, before that is committed.
STOP = f"""
create function stop_here() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared({LOCK});
  return new;
end $$;
create trigger stop_here before update on weirkeeper.replay
  for each row when (new.done = 600) execute function stop_here();
"""
STOPPED = (
    "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    " and database = (select oid from pg_database where datname = current_database())"
)
REPLAYED = (
    "select count(*), count(distinct event_id) from weirkeeper.job"
    " where kind = 'receipt.number' and tags @> '{replay}'"
)


@pytest.fixture
def flow(programs: Programs, database_url: str) -> Iterator[Flow]:
    programs.environment |= DECLARED
    with psycopg.connect(database_url, autocommit=True) as conn:
        with connect(database_url, "tests") as session:
            declare(session, APP)
        yield Flow(conn)


def start(programs: Programs, flow: Flow, *command: str) -> Any:
    before = flow.one("select coalesce(max(epoch), 0) from weirkeeper.process")
    program = programs.start(*command)
    flow.until_ready(command[-1], beyond=before)
    return program


def fanned_out(flow: Flow) -> None:
    waiting = "select exists (select from weirkeeper.event_pending)"
    until(lambda: not flow.one(waiting), 30, "everything is fanned out")


def test_what_is_recorded_is_told(programs, flow):
    start(programs, flow, "relay")
    flow.conn.execute(RECORD, ("quiet", 3))
    for n in range(1, 6):  # the newest of one pass are equally new
        fanned_out(flow)
        flow.conn.execute("select weirkeeper.record_event('order.line.added', subject => %s)",
                          [f"order/{n}"])  # fmt: skip
    fanned_out(flow)

    types = {t["name"]: t for t in answer(programs, "events", "types")}
    assert set(types) >= {"order.paid", "order.line.added", "quiet"}
    assert sorted(types["order.line.added"]["subscriptions"]) == ["audit", "total"]
    reached = answer(programs, "events", "dry-run", "--type", "order.*", "--limit", "4")
    assert reached == [{"type": "order.line.added", "events": 4, "subscribers": ["audit", "total"],
                        "endpoints": []}]  # fmt: skip

    first = answer(programs, "events", "list", "--type", "order.*", "--limit", "3")
    rest = answer(
        programs, "events", "list", "--type", "order.*", "--before", first[-1]["id"]
    )  # fmt: skip
    assert [e["subject"] for e in (*first, *rest)] == [f"order/{n}" for n in (5, 4, 3, 2, 1)]
    one = answer(programs, "events", "get", first[0]["id"])
    assert {d["subscription"]: d["state"] for d in one["deliveries"]} == {
        "audit": "pending", "total": "pending"}  # fmt: skip
    unknown = cli(programs, "events", "get", "00000000-0000-4000-8000-000000000000")
    assert unknown.wait(60) == 1
    assert "expected the id of one that is kept" in unknown.text()


def test_a_poisoned_event_is_shown_and_requeued(programs, flow):
    start(programs, flow, "relay")
    refuse_jobs(flow.conn, "bad")
    bad = flow.one("select weirkeeper.record_event('order.paid', subject => 'bad')::text")
    fails = "select failures from weirkeeper.event_failure where event_id = %s"
    until(lambda: flow.one(fails, bad) == 1, 20, "it was set aside")
    # Three failures that nobody waits for: the relay comes to the fifth by itself.
    flow.conn.execute(
        "update weirkeeper.event_failure set failures = 4, next_try_at = clock_timestamp()"
    )

    def poisoned():
        return answer(programs, "events", "list", "--state", "poisoned")

    until(poisoned, 30, "it is poisoned")
    assert [e["id"] for e in poisoned()] == [bad]
    told = answer(programs, "events", "get", bad)
    assert (told["state"], told["failures"]) == ("poisoned", 5)
    assert told["last_error"].startswith("no job for bad")

    flow.conn.execute("drop trigger refuse on weirkeeper.job")
    assert answer(programs, "events", "requeue", bad)["events"] == 1
    jobs = "select count(*) from weirkeeper.job where event_id = %s"
    until(lambda: flow.one(jobs, bad) == 3, 20, "each subscriber has its job")
    assert poisoned() == []


def test_a_replay_goes_on_after_its_worker_was_killed(programs, flow, database_url):
    programs.environment |= ORDERS
    assert cli(programs, "migrate").wait(60) == 0
    start(programs, flow, "relay")
    flow.conn.execute(RECORD, ("order.paid", EVENTS))
    fanned_out(flow)
    replay = ("events", "replay", "--subscriber", "receipt.number", *EVER)
    plan = answer(programs, *replay)
    assert (plan["events"], plan["replay"]) == (EVENTS, None)
    assert flow.conn.execute(REPLAYED).fetchone() == (0, 0), "a plan does nothing"
    refused = cli(programs, *replay, "--confirm", str(EVENTS - 1))
    assert refused.wait(60) == 1
    assert "look at the plan again" in refused.text()

    flow.conn.execute(STOP)
    with psycopg.connect(database_url, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(%s)", (LOCK,))
        worker = start(programs, flow, "workers", "maintenance")
        waiting = cli(programs, *replay, "--confirm", str(EVENTS), "--wait")
        until(lambda: flow.one(STOPPED) == 1, 30, "the worker is in the third batch")
        [running] = answer(programs, "events", "replays")
        assert (running["state"], running["events"]) == ("running", EVENTS)
        assert running["done"] == 400, "what is committed, no more"
        worker.send(signal.SIGKILL)
        worker.wait(30)
    start(programs, flow, "workers", "maintenance")
    assert waiting.wait(60) == 0, waiting.text()
    assert f" of {EVENTS} events\n" in waiting.text(), "how far it is"

    status = answer(programs, "events", "replay-status", running["id"])
    assert (status["state"], status["done"], status["jobs"]) == ("finished", EVENTS, EVENTS)
    assert flow.conn.execute(REPLAYED).fetchone() == (EVENTS, EVENTS), "none lost, none doubled"
    priorities = "select distinct priority from weirkeeper.job where tags @> '{replay}'"
    assert flow.conn.execute(priorities).fetchall() == [(4,)]
    assert violations(flow.conn, 86_400.0) == []
