"""Waiting for jobs and fan-outs on a real database: races, gaps, bounds, many threads."""

from __future__ import annotations

import statistics
import threading
import time
from uuid import UUID

import psycopg
import pytest

import weirkeeper
from shared.errors import DatabaseUnavailable, InvalidArguments, NotFound
from shared.notices.waiters import LIMIT
from shared.postgres.application.waits import Last, PostgresWaits
from shared.postgres.driver.connect import Use, connect
from shared.postgres.driver.statements import statement
from shared.postgres.queues.retention import prune_jobs
from tests.support.bounds import at_most
from tests.support.rows import enqueue, fan_out, finish, record
from tests.support.waiting import pause, until

EVENT = "0b0e8f6c-2f6e-4a55-9a51-8d7a5f1f9d10"


@pytest.fixture
def waits(database_url):
    with PostgresWaits(database_url, "test") as made:
        yield made


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as made:
        yield made


def in_thread(work) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def listeners(conn) -> list[int]:
    rows = conn.execute(
        "select pid from pg_stat_activity where datname = current_database()"
        " and application_name = 'weirkeeper test listen'"
    )
    return [pid for (pid,) in rows]


def sessions(conn) -> int:
    row = conn.execute(
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name like 'weirkeeper test %'"
    ).fetchone()
    return row[0]


def test_a_final_job_is_answered_at_once_with_its_result(waits, conn):
    job_id = enqueue(conn)
    finish(conn, job_id, result={"pages": 3})
    answer = waits.wait(job_id, 30)
    assert (answer.state, answer.finished, answer.result) == ("completed", True, {"pages": 3})


def test_nobody_listens_for_what_is_over_at_the_first_look(waits, conn):
    job_id = enqueue(conn)
    finish(conn, job_id)
    for _ in range(3):
        assert waits.wait(job_id, 30).finished
    assert not waits._source.started()
    assert sessions(conn) == 1


def test_its_block_connects_to_read_before_anybody_waits(waits, conn):
    until(lambda: sessions(conn) == 1, 5, "the session that reads stands")
    assert listeners(conn) == []
    assert not waits._source.started()


def test_a_short_job_is_seen_before_listen_is_connected_for(waits, conn, monkeypatch):
    """It ends after the first look, with the slow poll out of the way."""
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    job_id = enqueue(conn)
    keep, want, steps = Last.keep, waits._source.want, []

    def keeping(last, read):
        keep(last, read)
        steps.append(read.found.state)
        if len(steps) == 1:
            finish(conn, job_id)

    monkeypatch.setattr(Last, "keep", keeping)
    monkeypatch.setattr(waits._source, "want", lambda: (steps.append("LISTEN"), want()))
    assert waits.wait(job_id, 30).finished
    assert steps == ["pending", "completed", "LISTEN"], "the next wait is likely to need it"
    until(lambda: listeners(conn), 5, "somebody listens")


def test_looks_grow_rare_where_nobody_can_listen(waits, conn, monkeypatch):
    looks = []
    keep = Last.keep
    monkeypatch.setattr(waits._source, "want", lambda: None)
    monkeypatch.setattr(Last, "keep", lambda last, read: (keep(last, read), looks.append(read)))
    waits.wait(enqueue(conn), 0.5)
    assert 6 < len(looks) <= 14, "5 in 10 ms, then after 4, 8 … 256 ms, and one at the bound"


@pytest.mark.parametrize("state", ["completed", "discarded", "cancelled"])
def test_whatever_finalises_wakes_the_waiter(waits, conn, database_url, state):
    job_id = enqueue(conn)

    def later() -> None:
        with psycopg.connect(database_url, autocommit=True) as other:
            until(lambda: listeners(conn), 5, "somebody listens")
            finish(other, job_id, state)

    thread = in_thread(later)
    answer = waits.wait(job_id, 30)
    thread.join()
    assert (answer.state, answer.finished) == (state, True)


def test_the_bound_passes_and_the_state_is_told(waits, conn):
    job_id = enqueue(conn)
    begun = time.monotonic()
    answer = waits.wait(job_id, 0.2)
    assert (answer.state, answer.finished) == ("pending", False)
    assert 0.2 <= time.monotonic() - begun < at_most(2, busy=10)
    conn.execute("update weirkeeper.ready set attempt = 1")
    assert waits.wait(job_id, 0).state == "retryable"


def test_a_job_put_back_by_hand_is_not_final_any_more(waits, conn):
    job_id = enqueue(conn)
    finish(conn, job_id, "discarded")
    conn.execute(
        "insert into weirkeeper.ready (queue, kind, priority, job_id, attempt, run)"
        " values ('index', 'corpus.index', 2, %s, 1, 1)",
        [int(job_id)],
    )
    answer = waits.wait(job_id, 0)
    assert (answer.state, answer.finished) == ("retryable", False)


@pytest.mark.parametrize("job_id", ["1", "0", "-1", "x", "", "9" * 20, "1; select 1", "١"])
def test_an_unknown_job_is_not_found(waits, job_id):
    with pytest.raises(NotFound, match="expected the id of one that is kept"):
        waits.wait(job_id, 5)


def test_an_id_is_taken_as_sql_and_python_return_it(waits, conn):
    job_id = enqueue(conn)
    assert waits.wait(int(job_id), 0) == waits.wait(job_id, 0)
    event_id = record(conn)
    fan_out(conn, event_id, {"corpus.index": 12})
    assert waits.await_fanout(UUID(event_id), "corpus.index", 0) == "12"


@pytest.mark.parametrize("given", [None, 1.0, True, b"1", ["1"]])
def test_what_can_be_no_id_is_refused_in_words(waits, given):
    with pytest.raises(InvalidArguments, match=r"job id: expected text or int; got .*enqueue"):
        waits.wait(given, 5)
    with pytest.raises(InvalidArguments, match=r"event id: expected text or UUID; got .*record"):
        waits.await_fanout(given, "corpus.index", 5)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("races", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_job_that_ends_between_enqueue_and_wait_is_missed(
    waits, conn, database_url, monkeypatch, races
):
    """Finishes race with registrations; each must be answered by its notice: no poll comes."""
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    jobs: list[str] = []
    seconds: list[float] = []
    ready = threading.Semaphore(0)

    def finisher() -> None:
        with psycopg.connect(database_url, autocommit=True) as other:
            for n in range(races):
                ready.acquire()
                finish(other, jobs[n])

    thread = in_thread(finisher)
    for _ in range(races):
        jobs.append(enqueue(conn))
        ready.release()
        begun = time.monotonic()
        assert waits.wait(jobs[-1], 30).finished
        seconds.append(time.monotonic() - begun)
    thread.join()
    assert statistics.median(seconds) < 0.25
    assert sorted(seconds)[races * 99 // 100] < at_most(0.25, busy=5), "of a hundred, 99"


def looked_since_it_listens(conn):
    return conn.execute(
        "select true from pg_stat_activity ear, pg_stat_activity eye where ear.pid = any(%s)"
        " and eye.datname = current_database() and eye.application_name = 'weirkeeper test reads'"
        " and eye.state = 'idle' and eye.query_start > ear.query_start",
        [listeners(conn)],
    ).fetchone()


def test_a_finish_in_the_gap_is_found_after_the_reconnect(waits, conn, monkeypatch):
    """Nobody hears the notice: LISTEN stands again a second after it; the slow poll is out of the way."""
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    job_id = enqueue(conn)
    answers = []
    thread = in_thread(lambda: answers.append((waits.wait(job_id, 60), time.monotonic())))
    until(lambda: looked_since_it_listens(conn), 5, "somebody waits for a notice")
    listen, again, reconnected = waits._source._ear.open, threading.Event(), []

    def held() -> None:
        assert again.wait(30)
        listen()
        reconnected.append(time.monotonic())

    monkeypatch.setattr(waits._source._ear, "open", held)
    conn.execute("select pg_terminate_backend(%s, 5000)", [listeners(conn)[0]])
    finish(conn, job_id)
    pause(1, "the gap lasts")
    assert (answers, listeners(conn)) == ([], [])
    again.set()
    thread.join(30)
    [(answer, at)] = answers
    assert answer.finished
    assert at - reconnected[0] < at_most(1.5, busy=20), "long before its bound"


def test_the_read_connection_may_be_lost_in_the_middle(waits, conn):
    job_id = enqueue(conn)
    assert not waits.wait(job_id, 0).finished
    conn.execute(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where datname = current_database() and application_name = 'weirkeeper test reads'"
    )
    finish(conn, job_id)
    assert waits.wait(job_id, 10).finished


def test_a_database_that_is_away_is_told_when_the_bound_has_passed():
    with PostgresWaits("postgresql://nobody@127.0.0.1:1/none", "test") as waits:
        for _ in range(2):  # after the connect ahead of the first wait has failed, too
            with pytest.raises(DatabaseUnavailable, match="refused"):
                waits.wait("1", 0.3)
        assert waits._reads.started()


def test_many_threads_share_two_connections(waits, conn, database_url):
    jobs = [enqueue(conn) for _ in range(LIMIT)]
    answers: list[bool] = []
    threads = [in_thread(lambda i=i: answers.append(waits.wait(i, 30).finished)) for i in jobs]
    until(lambda: listeners(conn), 5, "somebody listens")
    until(lambda: waits._waiters.count("weirkeeper_final") == LIMIT, 5, "64 wait")
    until(lambda: sessions(conn) == 2, 5, "one session listens, one reads")
    for job_id in jobs:
        finish(conn, job_id)
    assert sessions(conn) == 2
    for thread in threads:
        thread.join(30)
    assert answers == [True] * LIMIT


def test_the_65th_is_told_not_yet_at_once(waits, conn):
    job_id = enqueue(conn)
    threads = [in_thread(lambda: waits.wait(job_id, 30)) for _ in range(LIMIT)]
    until(lambda: waits._waiters.count("weirkeeper_final") == LIMIT, 5, "64 wait")
    took = []
    for _ in range(5):  # the quickest counts: 64 threads and other tests share the machine
        begun = time.monotonic()
        answer = waits.wait(job_id, 30)
        took.append(time.monotonic() - begun)
        assert (answer.state, answer.finished) == ("pending", False)
    finish(conn, job_id)
    for thread in threads:
        thread.join(30)
    assert min(took) < 0.2
    assert not waits._waiters.any()


def test_the_65th_of_events_is_told_not_yet_too_and_never_an_error(waits, conn):
    event_id = record(conn)
    threads = [
        in_thread(lambda: waits.await_fanout(event_id, "corpus.index", 30)) for _ in range(LIMIT)
    ]
    until(lambda: waits._waiters.count("weirkeeper_fanout") == LIMIT, 5, "64 wait")
    took = []
    for _ in range(5):
        begun = time.monotonic()
        assert waits.await_fanout(event_id, "corpus.index", 30) is None
        took.append(time.monotonic() - begun)
    job_id = enqueue(conn)
    finish(conn, job_id)
    assert waits.wait(job_id, 10).finished, "who waits for jobs has places of its own"
    fan_out(conn, event_id, {"corpus.index": 12})
    for thread in threads:
        thread.join(30)
    assert min(took) < 0.2
    assert "WaitersFull" not in weirkeeper.__all__, "callers never meet it"


def test_a_fanout_is_awaited(waits, conn, database_url):
    event_id = record(conn)
    assert waits.await_fanout(event_id, "corpus.index", 0) is None

    def relay() -> None:
        until(lambda: listeners(conn), 5, "somebody listens")
        with psycopg.connect(database_url, autocommit=True) as other:
            fan_out(other, event_id, {"corpus.index": 12})

    thread = in_thread(relay)
    assert waits.await_fanout(event_id.upper(), "corpus.index", 30) == "12"
    thread.join()
    assert waits.await_fanout(event_id, "nobody", 30) is None


@pytest.mark.parametrize("event_id", [EVENT, "", "17", EVENT + "x"])
def test_an_unknown_event_is_not_found(waits, event_id):
    with pytest.raises(NotFound, match="event: expected"):
        waits.await_fanout(event_id, "corpus.index", 5)


def test_a_job_that_is_removed_while_somebody_waits_is_gone(waits, conn, monkeypatch):
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    job_id = enqueue(conn)
    ends: list[float] = []

    def wait() -> None:
        with pytest.raises(NotFound, match="one that is kept"):
            waits.wait(job_id, 60)
        ends.append(time.monotonic())

    thread = in_thread(wait)
    until(lambda: listeners(conn), 5, "somebody listens")
    with conn.transaction():
        conn.execute("select weirkeeper.cancel_jobs(array[%s::bigint])", [job_id])
        assert prune_jobs(conn, 0, 0, lambda: False).rows == 1
    removed = time.monotonic()
    thread.join(30)
    assert ends[0] - removed < at_most(1, busy=20), "told, and not found by the poll"
    with pytest.raises(NotFound):
        waits.wait(job_id, 60)


def test_forged_notices_change_nothing(waits, conn, database_url):
    job_id = enqueue(conn)
    answers = []
    thread = in_thread(lambda: answers.append(waits.wait(job_id, 1)))
    until(lambda: listeners(conn), 5, "somebody listens")
    for payload in (job_id, "x", "0", "9" * 4000, f"{job_id},'"):
        conn.execute("select pg_notify('weirkeeper_final', %s)", [payload])
    thread.join(10)
    assert (answers[0].state, answers[0].finished) == ("pending", False)


@pytest.mark.parametrize(("name", "ids"), [("waits/jobs", [1, 2]), ("waits/fanouts", [EVENT])])
def test_reads_use_their_indexes(database_url, name, ids):
    with connect(database_url, "explain", Use.READ) as conn:
        conn.execute("set enable_seqscan = off")  # the tables of a test are empty
        plan = conn.execute("explain " + statement(name), {"ids": ids}).fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "Seq Scan" not in text, text


def test_a_job_that_ends_while_it_is_read_is_not_missed(waits, conn, monkeypatch):
    """The notice comes before the old answer is looked at: the wake must not be forgotten."""
    monkeypatch.setattr("shared.postgres.application.waits.POLL", 60)
    job_id = enqueue(conn)
    heard = threading.Event()
    read, hear = waits._answers.jobs, waits._waiters.heard
    looks = []

    def slow_read(ids):
        answer = read(ids)
        looks.append(answer)
        if len(looks) == 1:
            until(lambda: waits._source.connected, 5, "LISTEN stands")
            finish(conn, job_id)
            assert heard.wait(5)
        return answer

    def hearing(channel, payload):
        hear(channel, payload)
        heard.set()

    monkeypatch.setattr(waits._answers, "jobs", slow_read)
    monkeypatch.setattr(waits._waiters, "heard", hearing)
    begun = time.monotonic()
    assert waits.wait(job_id, 20).finished
    assert time.monotonic() - begun < 10
