"""The runtime of a process with an event loop: what it does, and that the loop stays free."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from shared.app import load_app
from shared.errors import Conflict, NotFound
from tests.support.rows import finish
from tests.support.waiting import until
from weirkeeper import AsyncRuntime, EnqueueOpts, JobFilter

KIND = "corpus.index"
SESSIONS = (
    "select pid from pg_stat_activity where application_name like 'weirkeeper shop%%'"
    " and datname = current_database()"
)


@pytest.fixture
def sql(database_url):
    with psycopg.connect(database_url, autocommit=True) as conn:
        yield conn


def run(url, body):
    """Run a test's coroutine with a runtime of its own."""

    async def inside():
        async with AsyncRuntime(url, "shop", load_app(None)) as runtime:
            return await body(runtime)

    return asyncio.run(inside())


def test_enqueue_look_step_in_and_wait(database_url, sql):
    async def body(runtime):
        job = await runtime.enqueue(KIND, {"subject": "a"}, EnqueueOpts(owner_id="me"))
        assert (await runtime.get(job)).args == {"subject": "a"}
        assert (await runtime.explain(job)).where == "ready"
        assert [j.id for j in await runtime.list(JobFilter(owner_id="me"))] == [job]
        assert not (await runtime.wait(job, 0)).finished
        waits = asyncio.ensure_future(runtime.wait(job, 20))
        assert await runtime.cancel(job) == "cancelled"
        assert (await waits).state == "cancelled"
        assert await runtime.retry(job) == "pending"
        done = await runtime.enqueue(KIND, {})
        finish(sql, done, "completed", {"a": 1})
        assert (await runtime.wait(done, 20)).result == {"a": 1}
        with pytest.raises(Conflict):
            await runtime.retry(done)
        with pytest.raises(NotFound):
            await runtime.get("4711")

    run(database_url, body)


def test_many_at_a_time(database_url):
    async def body(runtime):
        ids = await runtime.enqueue_many(KIND, [{"n": n} for n in range(30)])
        told: list[int] = []
        assert await runtime.cancel_many(JobFilter(kind=KIND), told=told.append) == 30
        assert told[-1] == 30
        assert await runtime.retry_many(JobFilter(kind=KIND)) == 30
        [stands] = await runtime.overview(KIND)
        assert stands.counts["pending"] == len(set(ids)) == 30

    run(database_url, body)


def test_pauses_and_periodic_jobs(database_url):
    async def body(runtime):
        await runtime.pause(kind=KIND)
        assert (await runtime.overview(KIND))[0].paused
        await runtime.resume(kind=KIND)
        assert not (await runtime.overview(KIND))[0].paused
        name = (await runtime.periodic())[0].name
        job = await runtime.run_periodic(name)
        [status] = [p for p in await runtime.periodic() if p.name == name]
        assert [start.id for start in status.starts] == [job]

    run(database_url, body)


def test_a_transaction_of_the_callers(database_url):
    async def body(runtime):
        async with await psycopg.AsyncConnection.connect(database_url) as conn:
            bound = runtime.with_tx(conn)
            jobs = [await bound.enqueue(KIND, {}), *await bound.enqueue_many(KIND, [{}, {}])]
            await conn.rollback()
        for job in jobs:
            with pytest.raises(NotFound):
                await runtime.get(job)
        kept = await runtime.enqueue(KIND, {})  # it was left as it is
        assert (await runtime.get(kept)).state == "pending"

    run(database_url, body)


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("bound", [False, True])
def test_an_awaited_job_has_waits_connect(database_url, sql, bound, many):
    """Those on the loop, and no others; a job that nobody waits for has none."""
    reads = SESSIONS.replace("shop%%", "shop reads")

    def stands():
        return sql.execute(reads).fetchall()

    async def body(runtime):
        async with await psycopg.AsyncConnection.connect(database_url) as conn:
            jobs = runtime.with_tx(conn) if bound else runtime
            enqueue, args = (jobs.enqueue_many, [{}]) if many else (jobs.enqueue, {})
            await enqueue(KIND, args)
            assert not runtime._waits._reads.started()
            await enqueue(KIND, args, EnqueueOpts(awaited=True))
            await asyncio.to_thread(until, stands, 5, "the session that reads stands")
            assert not runtime._engine._waits._reads.started()

    run(database_url, body)


def test_the_loop_stays_free_while_a_call_waits(database_url, sql):
    """A call that waits for a lock keeps its own session, not the loop, and not the looks."""

    def waits_for_a_lock():
        with psycopg.connect(database_url) as conn:
            return conn.execute(f"{SESSIONS} and wait_event_type = 'Lock'").fetchall()

    async def body(runtime):
        with sql.transaction():
            sql.execute("lock table weirkeeper.job in exclusive mode")
            held = asyncio.ensure_future(runtime.enqueue(KIND, {}))
            said = "the enqueue waits for the lock"
            await asyncio.to_thread(until, waits_for_a_lock, 20, said)
            assert await runtime.overview(KIND)  # the loop turns, and looks have another session
            assert not held.done()
        assert await held

    run(database_url, body)


def test_stop_ends_its_sessions_for_good(database_url, sql):
    async def body():
        runtime = AsyncRuntime(database_url, "shop")
        await runtime.stop()  # also before start
        another = AsyncRuntime(database_url, "shop")
        await another.start()
        await another.wait(await another.enqueue(KIND, {}), 0.01)
        assert sql.execute(SESSIONS).fetchall()
        await another.stop()
        await another.stop()
        with pytest.raises(Conflict, match="stopped"):
            await another.start()

    asyncio.run(body())
    until(lambda: not sql.execute(SESSIONS).fetchall(), 10, "its sessions are gone")
