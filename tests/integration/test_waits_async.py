"""Waiting on an event loop: many tasks, one LISTEN connection, a loop that is never blocked."""

from __future__ import annotations

import asyncio
import time

import psycopg
import pytest

from shared.errors import DatabaseUnavailable, InvalidArguments, NotFound
from shared.notices.channels import FANOUT, FINAL
from shared.notices.waiters import LIMIT
from shared.postgres.application import waits
from tests.support.rows import enqueue, fan_out, finish, record
from tests.support.waiting import until
from weirkeeper import AsyncWaits


@pytest.fixture
def conn(database_url):
    with psycopg.connect(database_url, autocommit=True) as made:
        yield made


@pytest.fixture
def only_notices(monkeypatch):
    monkeypatch.setattr(waits, "POLL", 60.0)


def run(url, body):
    """Run a test's coroutine with waits of its own."""

    async def with_waits():
        async with AsyncWaits(url, "test") as made:
            return await body(made)

    return asyncio.run(with_waits())


def test_its_block_connects_to_read_before_anybody_waits(database_url, conn):
    reading = (
        "select from pg_stat_activity where datname = current_database()"
        " and application_name = 'weirkeeper test reads'"
    )

    async def body(_made):
        await asyncio.to_thread(until, lambda: conn.execute(reading).fetchall(), 5, "it stands")

    run(database_url, body)


def test_a_short_job_is_seen_before_listen_is_connected_for(
    database_url, conn, only_notices, monkeypatch
):
    job = enqueue(conn)
    keep, steps = waits.Last.keep, []

    def keeping(last, read):
        keep(last, read)
        steps.append(read.found.state)
        if len(steps) == 1:
            finish(conn, job)

    monkeypatch.setattr(waits.Last, "keep", keeping)

    async def body(made):
        monkeypatch.setattr(made._source, "want", lambda: steps.append("LISTEN"))
        return (await made.wait(job, 30)).finished

    assert run(database_url, body)
    assert steps == ["pending", "completed", "LISTEN"]


async def waiting(made, count, channel=FINAL):
    said = f"{count} tasks wait"
    await asyncio.to_thread(until, lambda: made._waiters.count(channel) == count, 10, said)


def test_many_tasks_are_told_by_notice_and_the_loop_is_free(database_url, conn, only_notices):
    jobs = [enqueue(conn) for _ in range(20)]

    async def body(made):
        tasks = [asyncio.ensure_future(made.wait(job, 30)) for job in jobs]
        await waiting(made, 20)
        longest, turned = 0.0, time.monotonic()
        for job in jobs:
            await asyncio.to_thread(finish, conn, job, "completed", {"job": job})
            longest, turned = max(longest, time.monotonic() - turned), time.monotonic()
        answers = await asyncio.gather(*tasks)
        assert longest < 5
        return [(a.state, a.finished, a.result["job"]) for a in answers]

    assert run(database_url, body) == [("completed", True, job) for job in jobs]


def test_the_bound_passes_first(database_url, conn):
    job = enqueue(conn)

    async def body(made):
        began = time.monotonic()
        answer = await made.wait(job, 0.2)
        return answer, time.monotonic() - began

    answer, took = run(database_url, body)
    assert (answer.state, answer.finished) == ("pending", False)
    assert 0.2 <= took < 10


def test_the_65th_is_answered_at_once(database_url, conn):
    job = enqueue(conn)

    async def body(made):
        tasks = [asyncio.ensure_future(made.wait(job, 30)) for _ in range(LIMIT)]
        await waiting(made, LIMIT)
        took = []
        for _ in range(5):  # the quickest counts: other tests share the machine
            began = time.monotonic()
            assert not (await made.wait(job, 30)).finished
            took.append(time.monotonic() - began)
        await asyncio.to_thread(finish, conn, job)
        assert all(a.finished for a in await asyncio.gather(*tasks))
        return min(took)

    assert run(database_url, body) < 0.2


def test_a_task_that_is_cancelled_leaves_no_waiter(database_url, conn):
    job = enqueue(conn)

    async def body(made):
        task = asyncio.ensure_future(made.wait(job, 30))
        await waiting(made, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return made._waiters.count(FINAL)

    assert run(database_url, body) == 0


def test_a_fan_out(database_url, conn, only_notices):
    event = record(conn)

    async def body(made):
        task = asyncio.ensure_future(made.await_fanout(event.upper(), "corpus.index", 30))
        await waiting(made, 1, FANOUT)
        await asyncio.to_thread(fan_out, conn, event, {"corpus.index": 7})
        return await task, await made.await_fanout(event, "another", 1)

    assert run(database_url, body) == ("7", None)


def test_what_does_not_exist_and_what_cannot_be_read(database_url):
    async def body(made):
        for nothing in ("1", "x"):
            with pytest.raises(NotFound):
                await made.wait(nothing, 5)
        with pytest.raises(NotFound):
            await made.await_fanout("x", "corpus.index", 5)

    run(database_url, body)

    async def away(made):
        with pytest.raises(DatabaseUnavailable):
            await made.wait("1", 0.1)

    run("postgresql://nobody@127.0.0.1:1/none", away)


def test_a_number_is_an_id_too_and_a_bound_ends(conn, database_url):
    job = int(enqueue(conn))

    async def body(made):
        with pytest.raises(InvalidArguments, match="max_seconds: expected a number of seconds"):
            await made.wait(job, float("nan"))
        with pytest.raises(InvalidArguments, match="job id: expected text or int"):
            await made.wait(True, 0)
        return await made.wait(job, 0)

    assert not run(database_url, body).finished
