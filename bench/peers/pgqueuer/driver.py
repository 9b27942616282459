"""Drives PgQueuer for one measurement: a JSON command a line on standard input, an answer a line.

Runs in PgQueuer's own virtual environment, so it imports nothing of ours. bench/peers/README.md
tells the commands; bench/peers/dialog.py sends them. Times are nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import array
import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.adapters.drivers.asyncpg import AsyncpgDriver
from pgqueuer.adapters.persistence.queries import Queries
from pgqueuer.core.completion import CompletionWatcher

BATCH = 100  # of a claim and of finished jobs; concurrency is not bounded below it
CHUNK = 5000  # jobs in one call of enqueue


def answer(**fields: Any) -> None:
    """Tell the measurement."""
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def keep(path: Path, taken: array.array[int]) -> None:
    """Write when each job was called."""
    path.write_bytes(taken.tobytes())


class Commands:
    """What the measurement may ask for; one connection, as the library's own tools use."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._driver = AsyncpgDriver(connection)
        self._queries = Queries(self._driver)
        self._watcher: CompletionWatcher | None = None
        self._working: asyncio.Future[None] | None = None

    async def install(self) -> None:
        """Make the tables."""
        await self._queries.install()
        answer()

    async def fill(self, kind: str, jobs: int) -> None:
        """Enqueue in bulk."""
        began = time.monotonic_ns()
        for done in range(0, jobs, CHUNK):
            size = min(CHUNK, jobs - done)
            await self._queries.enqueue([kind] * size, [b"{}"] * size, [0] * size)
        answer(nanoseconds=time.monotonic_ns() - began)

    async def each(self, kind: str, jobs: int) -> None:
        """Enqueue one by one."""
        began = time.monotonic_ns()
        for _ in range(jobs):
            await self._queries.enqueue(kind, b"{}")
        answer(nanoseconds=time.monotonic_ns() - began)

    async def put(self, kind: str) -> None:
        """Enqueue one; tell when its commit was known."""
        await self._queries.enqueue(kind, b"{}")
        answer(committed=time.monotonic_ns())

    async def wait(self, kind: str) -> None:
        """Enqueue one and wait for its end; tell both moments."""
        if self._watcher is None:
            self._watcher = await CompletionWatcher(
                self._driver, queries=self._queries
            ).__aenter__()
        [job] = await self._queries.enqueue(kind, b"{}")
        committed = time.monotonic_ns()
        status = await self._watcher.wait_for(job)
        assert status == "successful", status
        answer(committed=committed, seen=time.monotonic_ns())

    async def work(self, starts: str, stamps: str, expected: int) -> None:
        """Start working; tell when the expected number of jobs began."""
        taken = array.array("q")
        file = os.open(stamps, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        pgq = PgQueuer(self._driver)

        @pgq.entrypoint("noop")
        async def noop(_job: object) -> None:
            taken.append(time.monotonic_ns())
            if len(taken) == expected:
                keep(Path(starts), taken)
                answer(called=expected)

        @pgq.entrypoint("stamp")
        async def stamp(_job: object) -> None:
            os.write(file, time.monotonic_ns().to_bytes(8, "little"))

        self._working = asyncio.ensure_future(pgq.run(batch_size=BATCH))
        answer(ready=True)


async def main(url: str) -> None:
    """Obey until standard input ends."""
    connection = await asyncpg.connect(url)
    commands = Commands(connection)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        given = json.loads(line)
        await getattr(commands, given.pop("command"))(**given)
    os._exit(0)  # nothing of a measurement is kept


uvloop.run(main(sys.argv[1]))
