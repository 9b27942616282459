"""Stops and rests that people ask for: `weirkeeper drain`, what `weirkeeper drains` keeps of them."""

from __future__ import annotations

import re

import pytest

from tests.support.flow import answer, cli
from tests.support.queue import alive, queue
from tests.support.waiting import pause, until

__all__ = ["queue"]

APP = {"WEIRKEEPER_APP": "tests.support.app:app"}
OLD, NEW = {"WEIRKEEPER_GENERATION": "one"}, {"WEIRKEEPER_GENERATION": "two"}


def ready(conn, role):
    row = conn.execute(
        "select count(*) from weirkeeper.process where role = %s and phase = 'ready'", (role,)
    ).fetchone()
    return bool(row and row[0])


def phase(conn, generation, slot):
    row = conn.execute(
        "select phase from weirkeeper.process where generation = %s and slot = %s"
        " order by epoch desc limit 1",
        (generation, slot),
    ).fetchone()
    return row and row[0]


def told(programs, *arguments, env=None, code=0):
    program = cli(programs, *arguments, env=env)
    assert program.wait(90) == code, program.text()
    return program.text()


@pytest.mark.parametrize(
    ("role", "phases"), [("relay", "pass"), ("listener", "waits"), ("metrics", "answers")]
)
def test_every_role_leaves_a_row_of_its_stop(programs, queue, role, phases):
    program = programs.start(role)
    until(lambda: ready(queue.conn, role), 60, f"the {role} is ready")
    assert program.terminate() == 0
    [row] = answer(programs, "drains", "--slot", role)
    assert (row["role"], row["slot"], list(row["phases"])) == (role, role, [phases])
    assert row["host"]
    assert "T" in row["finished_at"]
    assert phases in told(programs, "drains")


def test_what_a_stop_interrupted_is_named(programs, queue):
    program = queue.start(WEIRKEEPER_DRAIN_SECONDS="0.2", WEIRKEEPER_GRACE_SECONDS="0.5")
    job = queue.enqueue("sleep", {"seconds": 600})
    queue.begun(job)
    assert program.terminate() == 0
    [row] = answer(programs, "drains")
    assert row["interrupted"] == [{"job": job, "kind": "t.sleep"}]
    assert row["jobs"]["interrupted"] == 1
    text = told(programs, "drains")
    assert f"t interrupted {job} (t.sleep): in line again" in text
    assert re.search(r"give_back [\d.]+ wait [\d.]+ interrupt [\d.]+ flush [\d.]+ ", text)


def test_no_stop_is_told_so(programs, queue):
    assert "no process has stopped" in told(programs, "drains")
    assert answer(programs, "drains") == []


def test_without_a_supervisord_it_refuses_and_stops_nothing(programs, queue):
    program = queue.start()
    assert "no supervisord runs in" in told(programs, "drain", code=1)
    assert program.running()


def test_an_older_release_rests_while_a_newer_one_works_and_works_again_when_asked(programs, queue):
    old = queue.start(**OLD)
    running = queue.enqueue("sleep", {"seconds": 2})
    queue.begun(running)
    new = queue.start("--slot", "t-2", WEIRKEEPER_CHILDREN="t=1", **NEW)

    said = told(programs, "drain", "--generation", "old", env=NEW)
    assert "t@" in said
    assert "(one): start nothing more; generation two works" in said
    assert "no job runs there" in said
    assert phase(queue.conn, "one", "t") == "draining"
    assert queue.final(running)["outcome"] == "completed"  # what ran went on

    jobs = [queue.enqueue("sleep", {"seconds": 0.2}) for _ in range(6)]
    pids = {queue.begun(job, timeout=30)["pid"] for job in jobs}
    assert len(pids) == 1  # of the one child of the new release
    assert old.running()
    assert phase(queue.conn, "two", "t-2") == "ready"

    assert new.terminate() == 0
    waiting = queue.enqueue("ok")
    pause(1, "the old release must not start it while it rests")
    assert queue.where(waiting) == ["ready"]
    assert "works again" in told(programs, "drain", "--undo", env=OLD)
    assert queue.final(waiting)["outcome"] == "completed"
    until(lambda: phase(queue.conn, "one", "t") == "ready", 30, "it is ready again")
    assert old.terminate() == 0


def test_a_relay_rests_too(programs, queue):
    old = programs.start("relay", env={**APP, **OLD})
    until(lambda: ready(queue.conn, "relay"), 60, "the relay is ready")
    new = programs.start("relay", "--slot", "relay-2", env={**APP, **NEW})
    until(lambda: phase(queue.conn, "two", "relay-2") == "ready", 60, "the new one is ready")
    told(programs, "drain", "--generation", "one", env=NEW)
    assert phase(queue.conn, "one", "relay") == "draining"
    assert new.terminate() == 0
    queue.record(subject="s")
    pause(1.5, "a relay that rests must not take it")
    assert queue.count("event_pending") == 1
    told(programs, "drain", "--undo")
    until(lambda: queue.count("event_pending") == 0, 30, "the old relay took it")
    assert old.terminate() == 0


def test_nothing_rests_without_a_successor(programs, queue):
    old = queue.start(**OLD)
    said = told(programs, "drain", "--generation", "old", env=NEW, code=78)
    assert "ready processes of generation two" in said
    assert "none for t" in said
    assert phase(queue.conn, "one", "t") == "ready"
    said = told(programs, "drain", "--generation", "one", env=OLD, code=78)
    assert "another generation than this one" in said
    assert old.running()
    assert alive(old.pid)
