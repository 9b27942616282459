"""2,000 notes through the whole server while its processes are killed, or it is stopped.

Each kill must be made good: the process is replaced, nothing that it started lives on, and in the
end every note is searchable, none lost and none doubled.
"""

from __future__ import annotations

import json
import os
import signal

import psycopg
import pytest

from tests.process.servers import Server
from tests.support.flow import Flow, all_gone, below, cli, lives, write_notes
from tests.support.processes import ROOT
from tests.support.waiting import until

NOTES = 2000
ALL = NOTES + 20  # and their folders
SLOTS = ("relay", "index", "listener")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture
def folder(tmp_path):
    return str(write_notes(tmp_path, NOTES))


@pytest.fixture
def flow(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield Flow(conn)


def newest(flow, slot):
    return flow.one("select max(epoch) from weirkeeper.process where slot = %s", slot)


def keep_busy(flow):
    """On a machine so fast that the import is almost over, change every note once more."""
    if flow.open_jobs() < 400:
        flow.conn.execute("update site.note set excerpt = excerpt || '.'")


def kill(flow, slot):
    """SIGKILL a program; wait until another life of it is ready and nothing of it is left."""
    keep_busy(flow)
    pid, epoch = flow.pid(slot), newest(flow, slot)
    left = lives([pid, *below(pid)])
    os.kill(pid, signal.SIGKILL)
    until(lambda: all_gone(left), 10, f"everything that {slot} started is gone")
    flow.until_ready(slot, beyond=epoch)


def kill_below(flow, slot, pid):
    """SIGKILL something that a queue process started; wait until as much runs again."""
    keep_busy(flow)
    parent = flow.pid(slot)
    before, left = len(below(parent)), lives([pid, *below(pid)])
    os.kill(pid, signal.SIGKILL)
    until(lambda: all_gone(left), 10, "it and what it started is gone")
    until(lambda: len(below(parent)) >= before, 20, "it was replaced")
    assert flow.pid(slot) == parent, "the queue process itself lives on"


def fork_server(flow):
    """The index queue's fork server: a child of its parent that has children itself."""
    return next(pid for pid in below(flow.pid("index")) if below(pid))


def child(flow):
    return below(fork_server(flow))[0]


def finished(flow, server):
    until(lambda: flow.searchable() == ALL, 180, f"all are searchable:\n{server.told()[-3000:]}")
    until(lambda: flow.open_jobs() == 0, 30, "every job ended")
    flow.check_nothing_lost_or_doubled()
    assert flow.notes() == ALL


def test_kills_during_an_import(programs, flow, folder):
    server = Server(programs).until_ready()
    flow.until_ready(*SLOTS)
    importing = cli(programs, "corpus", "import", folder)
    until(lambda: flow.searchable() > 0, 60, "the import is under way")
    kill_below(flow, "index", child(flow))
    kill_below(flow, "index", fork_server(flow))
    kill(flow, "index")
    kill(flow, "relay")
    kill(flow, "listener")
    assert importing.wait(120) == 0, importing.text()
    finished(flow, server)
    assert server.stop() == 0, server.told()


def test_a_stop_during_an_import_and_a_restart(programs, flow, folder):
    server = Server(programs).until_ready()
    importing = cli(programs, "corpus", "import", folder)
    until(lambda: flow.searchable() > 0, 60, "the import is under way")
    assert server.stop() == 0, server.told()  # bounded by servers.STOP
    assert importing.wait(120) == 0, importing.text()
    assert flow.searchable() < ALL, "the stop came too late to show anything"
    finished(flow, Server(programs).until_ready())


def test_the_demo_on_the_server(programs, flow):
    Server(programs).until_ready()
    assert (ROOT / "docs").is_dir()
    first, second = (_demo(programs) for _ in range(2))
    assert first["imported"]["created"] > 10
    assert (first["not_searchable"], first["receipts_indexed"]) == ([], first["receipts"])
    assert second["imported"]["created"] == second["imported"]["updated"] == 0
    assert second["receipts_indexed"] == second["receipts"]
    assert 0 < first["largest_pass"] <= 200
    for report in (first, second):
        hits = {s["query"]: len(s["found"]["hits"]) for s in report["searches"]}
        assert all(hits.values()), hits
        assert {"metrics", "listener"} <= set(report["addresses"])
    count = first["imported"]["created"] + first["receipts"]
    assert flow.notes() == count
    people = cli(programs, "demo")
    assert people.wait(120) == 0, people.text()
    assert "note → searchable" in people.text()
    assert "curl -s http://127.0.0.1:" in people.text()
    assert "\x1b" not in people.text()


def _demo(programs):
    program = cli(programs, "demo", "--json")
    assert program.wait(200) == 0, program.text()
    text = program.text()
    return json.loads(text[text.index("\n{") :])
