"""ADAPTER of the port AsyncWaits: brief waits on an event loop, as PostgresWaits for threads.

The waits themselves are on the loop; its reads, short ones, are in threads, one at a time. Must
never block the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import Self, TypeVar

from shared.clock import SYSTEM
from shared.errors import WaitersFull
from shared.jobs.port import Wait
from shared.notices.channels import FANOUT, FINAL
from shared.notices.source import NoticeSource
from shared.notices.waiters import Waiters
from shared.postgres import waits
from shared.postgres.answers import Answers, Fanout
from shared.postgres.ear import PostgresEar

T = TypeVar("T")


class PostgresAsyncWaits:
    """Waits of one process, for any number of tasks; leave its block, or `close` it, at the end.

    Args:
        url: libpq URI, direct (no pooler).
        name: of the sessions.
    """

    def __init__(self, url: str, name: str) -> None:
        self._answers = Answers(url, name)
        self._reading = threading.Lock()  # the read connection, and the start of the source
        self._waiters = Waiters()
        # When the loop of the source died, the slow poll still answers.
        self._source = NoticeSource(
            PostgresEar(url, name), self._waiters, lambda _: None, always=False
        )

    async def wait(self, job_id: str, max_seconds: float) -> Wait:
        """Wait until a job is final; see PostgresWaits.wait."""

        def look() -> Wait:
            return waits.job_answer(self._answers, job_id)

        return await self._until(FINAL, job_id, look, lambda answer: answer.finished, max_seconds)

    async def await_fanout(
        self, event_id: str, subscription: str, max_seconds: float
    ) -> str | None:
        """Wait for an event's fan-out; see PostgresWaits.await_fanout."""
        key = event_id.lower()

        def look() -> Fanout:
            return waits.fanout_answer(self._answers, key)

        jobs = await self._until(FANOUT, key, look, lambda jobs: jobs is not None, max_seconds)
        return None if jobs is None else jobs.get(subscription)

    async def close(self) -> None:
        """End both connections."""
        await asyncio.to_thread(self._close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _until(
        self,
        channel: str,
        key: str,
        look: Callable[[], T],
        done: Callable[[T], bool],
        max_seconds: float,
    ) -> T:
        deadline = SYSTEM.monotonic() + max_seconds
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        last = waits.Last[T]()
        read = self._read
        with ExitStack() as stack:
            try:
                wake = _waker(loop, woken)
                stack.enter_context(self._waiters.register(channel, key, wake))
            except WaitersFull:
                deadline = 0.0  # look once, never queue
            else:
                await asyncio.to_thread(self._listen)
            while True:
                woken.clear()
                await asyncio.to_thread(last.keep, read, look)
                left = deadline - SYSTEM.monotonic()
                if left <= 0 or last.satisfies(done):
                    return last.value()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left, waits.POLL)):
                        await woken.wait()

    def _listen(self) -> None:
        with self._reading:
            self._source.start()

    def _read(self, look: Callable[[], T]) -> T:
        with self._reading:
            return look()

    def _close(self) -> None:
        self._source.stop()
        with self._reading:
            self._answers.close()


def _waker(loop: asyncio.AbstractEventLoop, woken: asyncio.Event) -> Callable[[], None]:
    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(woken.set)

    return wake
