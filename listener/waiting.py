"""One caller's wait, on the event loop: register, read, wait, read again.

Stands between the routes (listener.server) and the waiters with their notices and reads. Ends when
what is waited for is so, when the bound has passed, when the program stops, or when the caller has
hung up, which is looked for twice a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from shared.clock import SYSTEM
from shared.errors import DatabaseUnavailable, NotFound
from shared.notices.channels import FANOUT, FINAL
from shared.notices.reads import Read, Reads, on_loop
from shared.notices.waiters import Waiters

POLL = 1.0  # seconds between reads when no notice comes
NOT_KEPT = {
    FINAL: "no job with the id {key} is kept: there never was one, or it ended long ago "
    "(completed jobs are kept for at least 24 h, discarded and cancelled ones for 7 days)",
    FANOUT: "no event with the id {key} is kept: there never was one, its transaction has not "
    "committed, or it is old",
}
SLICE = 0.5  # seconds between looks at whether the caller is still there


class CallerGone(Exception):
    """The caller hung up; there is nobody to answer."""


class Waiting:
    """The waits of all callers.

    Args:
        waiters: wake them.
        reads: answers them.
    """

    def __init__(self, waiters: Waiters, reads: Reads) -> None:
        self._waiters = waiters
        self._reads = reads
        self.stopping = False

    def stop(self) -> None:
        """Let every wait end now; called on the event loop."""
        self.stopping = True
        self._waiters.missed()

    async def wait(
        self,
        channel: str,
        key: str,
        done: Callable[[Any], bool],
        seconds: float,
        gone: Callable[[], Awaitable[bool]],
    ) -> Any:
        """Wait until something is so.

        Args:
            channel: FINAL for a job, FANOUT for an event.
            key: its id.
            done: whether an answer ends the wait.
            seconds: bound.
            gone: whether the caller hung up.

        Returns:
            The newest answer, whether it is `done` or not.

        Raises:
            WaitersFull: 64 others wait.
            NotFound: no such job or event.
            DatabaseUnavailable: nothing could be read within the bound.
            CallerGone: nobody is there to answer.
        """
        deadline = SYSTEM.monotonic() + seconds
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        last = Read(error=DatabaseUnavailable("nothing was read"))
        with self._waiters.register(channel, key, lambda: on_loop(loop, woken.set)):
            while True:
                woken.clear()
                read = await self._reads.read_async(channel, key)
                if read.error is None and not read.known:
                    raise NotFound(NOT_KEPT[channel].format(key=key))
                # An outage in the middle of a wait does not end the wait.
                last = read if read.error is None or last.error is not None else last
                left = deadline - SYSTEM.monotonic()
                if left <= 0 or self.stopping or (read.error is None and done(read.found)):
                    break
                await self._pause(woken, min(left, POLL), gone)
        if last.error is not None:
            raise last.error
        return last.found

    async def _pause(
        self, woken: asyncio.Event, seconds: float, gone: Callable[[], Awaitable[bool]]
    ) -> None:
        until = SYSTEM.monotonic() + seconds
        while not woken.is_set() and not self.stopping:
            left = until - SYSTEM.monotonic()
            if left <= 0:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(min(left, SLICE)):
                    await woken.wait()
            if await gone():
                raise CallerGone
