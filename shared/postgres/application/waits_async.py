"""ADAPTER of the port AsyncWaits: brief waits on an event loop, as PostgresWaits for threads.

The waits themselves are on the loop; its reads are in a thread of their own, one at a time
(shared.notices.reads). Must never block the loop.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self, TypeVar

from shared.clock import SYSTEM
from shared.errors import WaitersFull
from shared.jobs.lookups import wait_bound
from shared.jobs.port import Wait
from shared.notices.channels import FANOUT, FINAL
from shared.notices.reads import Reads, on_loop
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres.application import waits
from shared.postgres.application.answers import Answers, Fanout
from shared.postgres.application.ear import PostgresEar

T = TypeVar("T")


class PostgresAsyncWaits:
    """Waits of one process, for any number of tasks; leave its block, or `close` it, at the end.

    Args:
        url: libpq URI, direct (no pooler).
        name: of the sessions.
    """

    def __init__(self, url: str, name: str) -> None:
        self._reads = Reads(Answers(url, name), lambda _: None, turn=waits.IDLE)
        self._waiters = Waiters()
        # When the loop of the source died, the slow poll still answers.
        self._source = NoticeSource(
            PostgresEar(url, name), self._waiters, lambda _: None, always=False
        )

    async def wait(self, job_id: str | int, max_seconds: float) -> Wait:
        """Wait until a job is final; see PostgresWaits.wait."""
        last: waits.Last[Wait] = waits.Last(
            FINAL, waits.checked_job_id(job_id), lambda answer: answer.finished
        )
        return await self._until(last, max_seconds)

    async def await_fanout(
        self, event_id: str, subscription: str, max_seconds: float
    ) -> str | None:
        """Wait for an event's fan-out; see PostgresWaits.await_fanout."""
        key = waits.checked_event_id(event_id)
        last: waits.Last[Fanout] = waits.Last(FANOUT, key, lambda jobs: jobs is not None)
        jobs = await self._until(last, max_seconds)
        return None if jobs is None else jobs.get(subscription)

    def open(self) -> None:
        """Begin to connect the session that reads; see PostgresWaits.open. Never blocks."""
        self._reads.start()

    async def close(self) -> None:
        """End both connections."""
        await asyncio.to_thread(self._close)

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _until(self, last: waits.Last[T], max_seconds: float) -> T:
        deadline = SYSTEM.monotonic() + wait_bound(max_seconds)
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._reads.start()
        with ExitStack() as stack:
            try:
                stack.enter_context(
                    self._waiters.register(last.channel, last.key, lambda: on_loop(loop, woken.set))
                )
            except WaitersFull:
                deadline = 0.0  # look once, never queue
            while True:
                woken.clear()
                last.keep(await self._reads.read_async(last.channel, last.key))
                left = deadline - SYSTEM.monotonic()
                if left <= 0 or last.satisfied():
                    last.leave(self._source)
                    return last.value()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, last.pause(self._source))):
                        await woken.wait()

    def _close(self) -> None:
        self._source.stop()
        self._reads.stop()
