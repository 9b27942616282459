"""AsyncJobs and AsyncRecorder: the same promises, for asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest

import weirkeeper
from shared.errors import Conflict, InvalidArguments, UnknownEventType, UnknownKind
from shared.jobs.options import EnqueueOpts, Unique

KIND = "corpus.index"


def rows(url: str, query: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as conn:
        return [row[0] for row in conn.execute(query).fetchall()]


async def connect(url: str, **more: Any) -> psycopg.AsyncConnection[Any]:
    return await psycopg.AsyncConnection.connect(url, **more)


def test_jobs_and_events_exist_if_and_only_if_the_transaction_commits(database_url):
    async def record(*, commit: bool) -> list[str]:
        async with await connect(database_url) as conn:
            jobs, recorder = weirkeeper.AsyncJobs(conn), weirkeeper.AsyncRecorder(conn)
            found = [
                await jobs.enqueue(KIND, {"n": 1}, EnqueueOpts(tags=("t",))),
                *await jobs.enqueue_many(KIND, [{"n": 2}, {"text": "a\\b\n"}]),
            ]
            await recorder.record("corpus.note.changed", subject="s", data={"note_id": "1"})
            await (conn.commit() if commit else conn.rollback())
            return found

    asyncio.run(record(commit=False))
    assert rows(database_url, "select 1 from weirkeeper.job, weirkeeper.event") == []
    ids = asyncio.run(record(commit=True))
    assert rows(database_url, "select id::text from weirkeeper.job order by id") == ids
    assert rows(database_url, "select args from weirkeeper.job order by id")[2] == {
        "text": "a\\b\n"
    }
    assert rows(database_url, "select subject from weirkeeper.event") == ["s"]


def test_in_autocommit_mode_many_are_one_transaction(database_url):
    async def main() -> None:
        async with await connect(database_url, autocommit=True) as conn:
            jobs = weirkeeper.AsyncJobs(conn)
            assert len(await jobs.enqueue_many(KIND, [{}] * 5)) == 5
            with pytest.raises(UnknownKind):
                await jobs.enqueue_many("no.such", [{}] * 5)
            assert len(await jobs.enqueue_many(KIND, [{}] * 5)) == 5

    asyncio.run(main())
    assert rows(database_url, "select count(*) from weirkeeper.ready") == [10]


def test_refusals_are_ours_and_leave_the_transaction_usable(database_url):
    async def main() -> None:
        async with await connect(database_url) as conn:
            jobs, recorder = weirkeeper.AsyncJobs(conn), weirkeeper.AsyncRecorder(conn)
            with pytest.raises(InvalidArguments, match="finite"):
                await jobs.enqueue(KIND, {"x": float("nan")})
            with pytest.raises(InvalidArguments, match=r"args_list\[1\]"):
                await jobs.enqueue_many(KIND, [{}, {"x": "\0"}])
            with pytest.raises(InvalidArguments, match="NUL"):
                await recorder.record("corpus.note.changed", subject="\0")
            await jobs.enqueue(KIND, {})
            with pytest.raises(UnknownEventType):
                async with conn.transaction():
                    await recorder.record("no.such")
            with pytest.raises(UnknownKind):
                async with conn.transaction():
                    await jobs.enqueue("no.such", {})
            await conn.commit()

    asyncio.run(main())
    assert rows(database_url, "select count(*) from weirkeeper.job") == [1]


def test_with_tx_leaves_the_original_intact(database_url):
    async def main() -> None:
        async with await connect(database_url) as one, await connect(database_url) as two:
            jobs, recorder = weirkeeper.AsyncJobs(one), weirkeeper.AsyncRecorder(one)
            await jobs.with_tx(two).enqueue(KIND, {"n": 2})
            await recorder.with_tx(two).record("corpus.note.changed", subject="two")
            await two.commit()
            await jobs.enqueue(KIND, {"n": 1})
            await recorder.record("corpus.note.changed", subject="one")
            await one.rollback()

    asyncio.run(main())
    assert rows(database_url, "select args from weirkeeper.job") == [{"n": 2}]
    assert rows(database_url, "select subject from weirkeeper.event") == ["two"]


def test_two_tasks_at_once_enqueue_one_unique_job(database_url):
    async def enqueue(conn: Any, unique: Unique) -> str:
        return await weirkeeper.AsyncJobs(conn).enqueue(KIND, {}, EnqueueOpts(unique=unique))

    async def main() -> None:
        async with await connect(database_url) as one, await connect(database_url) as two:
            first = await enqueue(one, Unique())
            with pytest.raises(Conflict):
                await enqueue(two, Unique(wait=False))
            await two.rollback()
            second = asyncio.create_task(enqueue(two, Unique()))
            await one.commit()
            assert await asyncio.wait_for(second, 10) == first
            await two.commit()

    asyncio.run(main())
    assert rows(database_url, "select count(*) from weirkeeper.job") == [1]
