"""The listener as a real process, over real sockets."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from metrics.files import merged
from shared.notices.waiters import LIMIT
from tests.support.bounds import at_most
from tests.support.callers import Caller, descriptors
from tests.support.rows import address_when_ready, enqueue, fan_out, finish, record, session
from tests.support.waiting import until

EVENT = "0b0e8f6c-2f6e-4a55-9a51-8d7a5f1f9d10"


@pytest.fixture
def listener(programs):
    return programs.start("listener")


@pytest.fixture
def address(listener, database_url):
    return address_when_ready(database_url, "listener")


@pytest.fixture
def http(address):
    limits = httpx.Limits(max_connections=None)
    with httpx.Client(base_url=f"http://{address}", timeout=40, limits=limits) as client:
        yield client


@pytest.fixture
def conn(database_url):
    with session(database_url) as made:
        yield made


def waiting(http: httpx.Client, programs) -> int:
    """How many the listener says wait for jobs: of its own gauge, in the slot's file."""
    families = {f.name: f for f in merged(programs.home / "metrics").families}
    family = families.get("weirkeeper_listener_waiters")
    return int(sum(s.value for s in family.samples)) if family else 0


def test_a_final_job_is_told_with_its_result(http, conn):
    job_id = enqueue(conn)
    finish(conn, job_id, result={"pages": 3, "título": "é"})
    answer = http.get(f"/v1/jobs/{job_id}/wait")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json() == {
        "id": job_id,
        "state": "completed",
        "finished": True,
        "result": {"pages": 3, "título": "é"},
    }


def test_a_wait_ends_with_the_job(http, conn, programs):
    took = []
    with ThreadPoolExecutor(1) as pool:
        for _ in range(5):
            job_id = enqueue(conn)
            asked = pool.submit(http.get, f"/v1/jobs/{job_id}/wait?max=30")
            until(lambda: waiting(http, programs) == 1, 20, "the caller waits")
            finish(conn, job_id, "discarded")
            finished = time.monotonic()
            answer = asked.result(30)
            took.append(time.monotonic() - finished)
            assert (answer.status_code, answer.json()["state"]) == (200, "discarded")
            until(lambda: waiting(http, programs) == 0, 20, "nobody waits any more")
    assert min(took) < 0.1, f"answered by the slow poll, not by the notice: {took}"


def test_a_running_job_tells_how_far_it_is(http, conn):
    job_id = enqueue(conn)
    conn.execute(
        "insert into weirkeeper.running (job_id, run, attempt, queue, kind, priority, epoch, token,"
        " progress) select id, 1, 0, queue, kind, 2, 1, 1, %s from weirkeeper.job where id = %s",
        [json.dumps({"n": 40, "of": None}), job_id],
    )
    answer = http.get(f"/v1/jobs/{job_id}/wait", params={"max": 0})
    assert (answer.status_code, answer.json()["state"]) == (202, "running")
    assert answer.json()["progress"] == {"n": 40, "of": None}


def test_not_yet_when_the_bound_passes(http, conn):
    job_id = enqueue(conn)
    for bound, least in ((0, 0.0), (0.3, 0.3)):
        begun = time.monotonic()
        answer = http.get(f"/v1/jobs/{job_id}/wait", params={"max": bound})
        assert answer.status_code == 202
        assert answer.json() == {
            "id": job_id,
            "state": "pending",
            "finished": False,
            "result": None,
        }
        assert least <= time.monotonic() - begun < least + 1


def test_a_fanout_is_awaited(http, conn, programs):
    event_id = record(conn)
    path = f"/v1/events/{event_id}/wait?subscription=corpus.index&max="
    assert http.get(path + "0").status_code == 202
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(http.get, path + "30")
        until(lambda: waiting(http, programs) == 1, 20, "the caller waits")
        fan_out(conn, event_id, {"corpus.index": 12})
        answer = asked.result(10)
    assert answer.status_code == 200
    assert answer.json() == {
        "id": event_id,
        "subscription": "corpus.index",
        "finished": True,
        "job_id": "12",
    }
    other = http.get(f"/v1/events/{event_id.upper()}/wait?subscription=nobody")
    assert (other.status_code, other.json()["job_id"]) == (200, None)


MISTAKES = [
    ("/v1/jobs/1/wait", 404, "no job with the id 1 is kept"),
    ("/v1/jobs/1/wait", 404, "completed jobs are kept for at least 24 h"),
    (f"/v1/events/{EVENT}/wait?subscription=a", 404, f"no event with the id {EVENT} is kept"),
    ("/v1/jobs/x/wait", 400, "id: expected a job's decimal id; got 'x'"),
    ("/v1/jobs/-1/wait", 400, "id: expected"),
    ("/v1/jobs/99999999999999999999/wait", 400, "id: expected"),
    ("/v1/jobs/1%3Bselect/wait", 400, "id: expected"),
    ("/v1/jobs/1/wait?max=31", 400, "max: expected a decimal number of seconds from 0 to 30"),
    ("/v1/jobs/1/wait?max=-1", 400, "max: expected"),
    ("/v1/jobs/1/wait?max=nan", 400, "max: expected"),
    ("/v1/jobs/1/wait?max=", 400, "max: expected"),
    (
        "/v1/jobs/1/wait?max=1_0",
        400,
        "max: expected a decimal number of seconds from 0 to 30; got '1_0'",
    ),
    ("/v1/jobs/1/wait?max=%D9%A1", 400, "max: expected"),
    ("/v1/jobs/1/wait?max=1e1", 400, "max: expected"),
    ("/v1/jobs/1/wait?max=%2B1", 400, "max: expected"),
    ("/v1/jobs/1/wait?max=+1", 400, "max: expected"),
    ("/v1/jobs/1/wait?max=30.000000001", 400, "max: expected"),
    ("/v1/jobs/1_0/wait", 400, "id: expected"),
    ("/v1/jobs/%D9%A1/wait", 400, "id: expected"),
    ("/v1/jobs/1/wait/", 404, "no such route"),
    ("/livez/", 404, "no such route"),
    ("/v1/events/7/wait?subscription=a", 400, "id: expected an event's uuid"),
    (f"/v1/events/{EVENT}/wait", 400, "subscription: expected the name of one"),
    (f"/v1/events/{EVENT}/wait?subscription=" + "a" * 64, 400, "subscription: expected"),
    ("/v1/jobs/1", 404, "no such route; there are: GET /v1/jobs/{id}/wait?max=SECONDS, GET /v1/"),
    ("/", 404, "GET /readyz"),
]


def test_mistakes_are_told_clearly(http):
    for path, status, said in MISTAKES:
        answer = http.get(path)
        assert answer.status_code == status, path
        assert said in answer.json()["error"], path
    for method in ("HEAD", "POST", "OPTIONS"):
        for path in ("/v1/jobs/1/wait", "/livez"):
            answer = http.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET"), (method, path)


def test_the_65th_is_refused_at_once_and_places_come_back(listener, http, address, conn, programs):
    """64 wait, one more is refused; whoever hangs up frees a place within a second."""
    job_id = enqueue(conn)
    path = f"/v1/jobs/{job_id}/wait?max=30"
    refused, freed = [], []
    for _ in range(3):
        callers = [Caller(address, path) for _ in range(LIMIT)]
        until(lambda: waiting(http, programs) == LIMIT, 10, "64 wait")
        begun = time.monotonic()
        answer = http.get(path)
        refused.append(time.monotonic() - begun)
        assert (answer.status_code, answer.json()["reason"]) == (503, "full")
        assert answer.headers["retry-after"] == "1"
        begun = time.monotonic()
        for caller in callers:
            caller.hang_up()
        until(lambda: waiting(http, programs) == 0, 20, "all places are free")
        freed.append(time.monotonic() - begun)
    assert min(refused) < 0.2  # the quickest counts: other tests share the machine
    assert min(freed) < 1
    assert http.get(path.replace("30", "0")).status_code == 202
    assert "Traceback" not in listener.text()


def test_a_wait_that_ends_by_its_bound_or_by_a_mistake_frees_its_place(http, conn, programs):
    """All 64 places, each time; the callers keep their connections."""
    path = f"/v1/jobs/{enqueue(conn)}/wait?max=0.5"
    freed = []
    with ThreadPoolExecutor(LIMIT) as pool:
        for _ in range(3):
            answers = list(pool.map(http.get, [path] * LIMIT))
            begun = time.monotonic()
            assert {answer.status_code for answer in answers} == {202}
            until(lambda: waiting(http, programs) == 0, 20, "all places are free")
            freed.append(time.monotonic() - begun)
            mistakes = pool.map(http.get, ["/v1/jobs/999999/wait?max=30"] * LIMIT)
            assert {answer.status_code for answer in mistakes} == {404}
            assert waiting(http, programs) == 0
    assert min(freed) < 1  # the quickest counts: other tests share the machine


@pytest.mark.timeout(900)
@pytest.mark.parametrize("cycles", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_cycles_leave_nothing_behind(http, address, conn, programs, listener, cycles):
    """Waits that end by bound, by finish, by hang-up and by mistake, again and again."""
    open_job, done_job = enqueue(conn), enqueue(conn)
    finish(conn, done_job)
    assert http.get(f"/v1/jobs/{done_job}/wait").status_code == 200  # opens the read connection
    before = descriptors(listener.pid)

    def cycle(n: int) -> None:
        if n % 4 == 0:
            Caller(address, f"/v1/jobs/{open_job}/wait?max=30").hang_up()
        elif n % 4 == 1:
            assert http.get(f"/v1/jobs/{open_job}/wait?max=0.01").status_code in (202, 503)
        elif n % 4 == 2:
            assert http.get(f"/v1/jobs/{done_job}/wait?max=30").status_code in (200, 503)
        else:
            assert http.get("/v1/jobs/999999/wait?max=30").status_code in (404, 503)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(cycle, range(cycles)))
    http.close()
    until(lambda: waiting(http, programs) == 0, 20, "nobody waits any more")
    until(lambda: descriptors(listener.pid) <= before, 10, "every connection is closed")
    assert "Traceback" not in listener.text()


def test_lost_sessions_are_opened_again_and_nobody_is_forgotten(http, conn, programs):
    """The job ends while nobody listens."""
    job_id = enqueue(conn)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(http.get, f"/v1/jobs/{job_id}/wait?max=30")
        until(lambda: waiting(http, programs) == 1, 20, "the caller waits")
        conn.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and application_name like 'weirkeeper listener %'"
        )
        finish(conn, job_id)
        finished = time.monotonic()
        answer = asked.result(30)
    assert answer.json()["finished"] is True
    assert time.monotonic() - finished < at_most(1.5, busy=15), "long before its bound"
    until(lambda: http.get("/readyz").status_code == 200, 20, "ready again")
    row = conn.execute("select count(*) from weirkeeper.process where role = 'listener'").fetchone()
    assert row[0] == 1, "a short gap is no new life"


def test_health(http, listener):
    assert http.get("/livez").json() == {"ok": True}
    assert http.get("/readyz").json() == {"ok": True}


def test_a_stop_answers_open_waits(listener, address, conn, http, programs, database_url):
    job_id = enqueue(conn)
    callers = [Caller(address, f"/v1/jobs/{job_id}/wait?max=30") for _ in range(20)]
    until(lambda: waiting(http, programs) == 20, 20, "20 wait")
    begun = time.monotonic()
    listener.send(signal.SIGTERM)
    assert {caller.answer()[0] for caller in callers} == {202}
    assert listener.wait(30) == 0
    assert time.monotonic() - begun < 5 + 10  # of a slow machine
    row = conn.execute("select phase from weirkeeper.process where role = 'listener'").fetchone()
    assert row == ("stopped",)


def test_it_uses_three_connections(http, conn, address):
    job_id = enqueue(conn)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: http.get(f"/v1/jobs/{job_id}/wait?max=0.2"), range(32)))
    names = [
        name
        for (name,) in conn.execute(
            "select application_name from pg_stat_activity where datname = current_database()"
            " and application_name like 'weirkeeper listener%' order by 1"
        )
    ]
    assert names == [f"weirkeeper listener {what}" for what in ("beat", "listen", "reads")]


def test_a_port_that_is_taken_is_one_clear_line(programs):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        program = programs.start("listener", env={"WEIRKEEPER_LISTENER_PORT": port})
        assert program.wait(10) == 78
    assert program.text().strip() == (
        f"weirkeeper listener: WEIRKEEPER_LISTENER_PORT: expected a free port of 127.0.0.1; got {port}; it is "
        "in use: stop who has it, or set WEIRKEEPER_LISTENER_PORT (0 = any free one)"
    )


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_it_binds_to_this_machine_only(programs, host):
    program = programs.start("listener", env={"WEIRKEEPER_HOST": host})
    assert program.wait(10) == 78
    assert "WEIRKEEPER_HOST: expected a loopback address" in program.text()
    assert len(program.text().strip().splitlines()) == 1


def test_a_second_process_of_the_slot_refuses(programs, listener, address):
    second = programs.start("listener")
    assert second.wait(10) == 78
    assert "--slot: expected a slot that no live process" in second.text()
    third = programs.start("listener", "--slot", "listener-2")
    until(lambda: "answers on" in third.text(), 10, "another slot is free")


def test_a_database_that_is_away_is_waited_for(programs):
    program = programs.start(
        "listener", env={"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}
    )
    until(lambda: "answers on http://" in program.text(), 10, "it answers")
    record_of_start = next(r for r in program.records() if "answers on" in r["message"])
    address = record_of_start["message"].rpartition("/")[2]
    assert httpx.get(f"http://{address}/livez").status_code == 200
    ready = httpx.get(f"http://{address}/readyz")
    assert (ready.status_code, ready.json()["reason"]) == (503, "no LISTEN connection")
    answer = httpx.get(f"http://{address}/v1/jobs/1/wait?max=0.1")
    assert (answer.status_code, answer.json()["reason"]) == (503, "database")
    assert program.terminate(5) == 0


def test_check_prints_and_starts_nothing(programs):
    program = programs.start("listener", "--check")
    assert program.wait(10) == 0
    assert json.loads(program.text())["bind"] == "127.0.0.1:0"
    assert not (programs.home / "metrics").exists()


def test_threads_are_few(listener, address, http, conn):
    """64 waits cost no thread."""
    before = threads(listener.pid)
    job_id = enqueue(conn)
    callers = [Caller(address, f"/v1/jobs/{job_id}/wait?max=30") for _ in range(LIMIT)]
    finish(conn, job_id)
    assert {caller.answer()[0] for caller in callers} == {200}
    assert threads(listener.pid) <= before + 1


def threads(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_a_database_that_hangs_keeps_nobody(listener, http, conn, programs):
    """Sessions that answer nothing, and do not end: bounds hold, and so does the stop."""
    job_id = enqueue(conn)
    assert http.get(f"/v1/jobs/{job_id}/wait?max=0").status_code == 202
    frozen = [
        pid
        for (pid,) in conn.execute(
            "select pid from pg_stat_activity where datname = current_database()"
            " and application_name like 'weirkeeper listener %'"
        )
    ]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        answer = http.get(f"/v1/jobs/{job_id}/wait?max=0.1")
        assert (answer.status_code, answer.json()["reason"]) == (503, "database")
        assert time.monotonic() - begun < 15  # its own bound and the read's, on a busy machine
        assert http.get("/livez").status_code == 200
        begun = time.monotonic()
        listener.send(signal.SIGTERM)
        assert listener.wait(30) == 0
        assert time.monotonic() - begun < 5 + 10  # of a slow machine
    finally:
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
