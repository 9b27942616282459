"""The whole path with real processes: a note is written, and a search finds it."""

from __future__ import annotations

import threading
import time

import psycopg
import pytest

from shared.postgres.application.waits import PostgresWaits
from shared.postgres.driver.connect import connect
from shared.postgres.site.notes import PostgresNotes
from shared.postgres.site.search import PostgresSearch
from shared.site.receipts import Receipt, receipt
from tests.support.bounds import at_most
from tests.support.flow import Flow, answer, cli, write_notes
from tests.support.rows import fan_out
from tests.support.waiting import until


@pytest.fixture
def flow(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield Flow(conn)


def start(programs, flow, *commands):
    for command in commands:
        programs.start(*command)
    flow.until_ready(*(command[-1] for command in commands))


def test_a_note_is_found_once_its_receipt_says_so(programs, flow):
    start(programs, flow, ("relay",), ("workers", "index"))
    saved = answer(programs, "corpus", "create", "后台任务", "--body", "每次最多处理两百行")
    assert saved["indexed"] is True
    hits = answer(programs, "corpus", "search", "两百")["hits"]
    assert [hit["note_id"] for hit in hits] == [saved["id"]]
    job = answer(programs, "jobs", "get", saved["index_job_id"])
    assert (job["state"], job["result"]) == ("completed", {"written": 1, "removed": 0})
    assert job["args"]["event_id"] == saved["event_id"]

    changed = answer(programs, "corpus", "update", saved["id"], "--body", "gone", "--tag", "x")
    assert (changed["indexed"], changed["version"]) == (True, 2)
    assert answer(programs, "corpus", "search", "两百")["hits"] == []
    same = answer(programs, "corpus", "update", saved["id"], "--body", "gone")
    assert (same["indexed"], same["index_job_id"], same["version"]) == (True, None, 2)


def test_an_import_is_searchable_and_a_second_one_doubles_nothing(programs, flow, tmp_path):
    start(programs, flow, ("relay",), ("workers", "index"))
    folder = str(write_notes(tmp_path, 250))
    done = answer(programs, "corpus", "import", folder)
    assert (done["created"], done["skipped"]) == (253, [])
    until(lambda: flow.searchable() == 253, 60, "every note is searchable")
    flow.check_nothing_lost_or_doubled()
    assert flow.one("select count(*) from weirkeeper.attempt where outcome <> 'completed'") == 0
    again = answer(programs, "corpus", "import", folder)
    assert (again["created"], again["updated"], again["unchanged"]) == (0, 0, 253)
    assert flow.notes() == 253


def test_sql_from_elsewhere_is_processed_like_any_other(programs, flow):
    start(programs, flow, ("relay",), ("workers", "index"))
    flow.conn.execute("insert into site.note (owner_id, genre, title) values ('o', 'raw', 'SQL')")
    flow.conn.execute("insert into weirkeeper.job (kind, args) values ('corpus.reindex', '{}')")
    until(lambda: flow.searchable() == 1, 10, "the note is searchable")
    until(lambda: flow.open_jobs() == 0, 10, "every job ended")
    flow.conn.execute("delete from site.note")
    until(lambda: flow.one("select bool_and(removed) from site.document"), 10, "it is not any more")


def test_without_workers_the_receipt_names_the_job(programs, flow):
    start(programs, flow, ("relay",))
    began = time.monotonic()
    saved = answer(programs, "corpus", "create", "Later")
    assert saved["indexed"] is False
    assert saved["index_job_id"]
    assert time.monotonic() - began < 2 + 20  # and what it takes to start Python on a busy machine
    job = answer(programs, "jobs", "get", saved["index_job_id"])
    assert job["state"] == "pending"


@pytest.fixture
def desk(database_url):
    with connect(database_url, "tests") as conn, PostgresWaits(database_url, "tests") as waits:
        yield PostgresNotes(conn), waits, PostgresSearch(conn)


def test_without_anything_the_write_stands_and_the_answer_comes_in_time(desk):
    notes, waits, search = desk
    written = notes.create("me", {"title": "Alone"})
    began = time.monotonic()
    answered = receipt(written, waits, search)
    assert answered == Receipt(indexed=False, index_job_id=None)
    assert 1.9 <= time.monotonic() - began < at_most(2.5, busy=12)


def test_the_65th_waiter_is_answered_at_once(desk, flow):
    notes, waits, search = desk
    events = [notes.create("me", {"title": str(n)}) for n in range(65)]
    threads = [
        threading.Thread(target=waits.await_fanout, args=(e.event_id, "corpus.index", 30))
        for e in events[:64]
    ]
    for thread in threads:
        thread.start()
    until(lambda: waits._waiters.count("weirkeeper_fanout") == 64, 20, "64 wait")
    took = []
    for _ in range(5):  # the quickest counts: 64 threads and other tests share the machine
        began = time.monotonic()
        assert receipt(events[64], waits, search) == Receipt(indexed=False, index_job_id=None)
        took.append(time.monotonic() - began)
    assert min(took) < 0.2
    assert all(thread.is_alive() for thread in threads), "the 64 were still waiting"
    for event in events[:64]:
        fan_out(flow.conn, event.event_id, {})
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["jobs", "get", "12345"], 1, "weirkeeper jobs: job: expected the id of one"),
        (
            ["jobs", "get", "abc"],
            1,
            "weirkeeper jobs: job: expected the id of one that is kept; got 'abc'",
        ),
        (
            ["corpus", "update", "77", "--body", "x"],
            1,
            "note: expected the id of one of yours; got '77'",
        ),
        (["corpus", "create", "x", "--parent", "77"], 1, "parent_id: expected a note of yours"),
        (["corpus", "import", "/nowhere"], 1, "expected a folder or a file; got '/nowhere'"),
        (["demo"], 1, "processes: expected relay and index ready; not ready: index, relay"),
    ],
)
def test_mistakes_are_one_clear_line(programs, arguments, code, said):
    program = cli(programs, *arguments)
    assert program.wait(30) == code
    assert said in program.text()
    assert len(program.text().strip().splitlines()) == 1


@pytest.mark.parametrize("arguments", [["jobs", "list"], ["corpus", "search", "x"], ["demo"]])
def test_without_a_server_they_say_how_to_start_one(programs, arguments):
    program = cli(programs, *arguments, env={"DATABASE_URL": ""})
    assert program.wait(30) == 78
    assert "no server runs here: expected one in" in program.text()
