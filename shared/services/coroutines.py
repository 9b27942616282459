"""The one event loop of a process that runs coroutines one after the other: `async def` handlers.

Before this: whoever was answered with a coroutine in place of an answer. After it: the coroutine's
own answer. The loop is made when the first one comes and used again; tasks that a coroutine leaves
behind are cancelled before `run` returns, so that nothing of one job goes on in the next. Runs in
the main thread, where requests to stop arrive; must never start a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
LINGER = 1.0  # seconds that cancelled tasks may take to end

Left = Callable[[list[str]], None]


class Coroutines:
    """Runs one coroutine at a time on one event loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def run(self, coroutine: Coroutine[Any, Any, T], left: Left) -> T:
        """Run a coroutine to its end.

        Args:
            coroutine: runs in a copy of the current context.
            left: told the names of tasks that it left behind, after they were cancelled.

        Returns:
            What it returns.

        Raises:
            RuntimeError: this thread runs an event loop already.
            BaseException: what it raises; a KeyboardInterrupt that hits the loop itself cancels
                the coroutine first, which may still answer.
        """
        if asyncio._get_running_loop() is not None:  # noqa: SLF001  (public ones raise for None)
            coroutine.close()
            raise RuntimeError(
                "an async handler: expected a thread without a running event loop; "
                "call this in another thread, with asyncio.to_thread(…)"
            )
        loop = self._open()
        self._task = task = loop.create_task(coroutine)
        try:
            return _complete(loop, task)
        finally:
            self._task = None
            self._clear(loop, left)

    def interrupt(self) -> bool:
        """Cancel the coroutine where it awaits. For a signal handler in the thread that runs it.

        Returns:
            Whether it will be. False = none runs, or code of a task does at this moment, which
            only an exception ends: raise one there.
        """
        loop, task = self._loop, self._task
        if loop is None or task is None or task.done() or asyncio.current_task(loop) is not None:
            return False
        loop.call_soon_threadsafe(task.cancel)
        return True

    def close(self) -> None:
        """End the loop; harmless when repeated."""
        loop, self._loop = self._loop, None
        if loop is not None:
            with suppress(Exception):
                loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def _open(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._loop.is_closed():
            self._loop = asyncio.new_event_loop()
        return self._loop

    def _clear(self, loop: asyncio.AbstractEventLoop, left: Left) -> None:
        """Cancel what is left; a loop whose tasks will not end is given up for a new one."""
        tasks = asyncio.all_tasks(loop)
        if not tasks:
            return
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks, timeout=LINGER))
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # looked at, so that asyncio does not complain of it later
        left(sorted(_name(task) for task in tasks))
        if asyncio.all_tasks(loop):
            self._loop = None
            loop.close()


def _complete(loop: asyncio.AbstractEventLoop, task: asyncio.Task[T]) -> T:
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt as interrupt:
        if task.done():
            raise
        # It hit the loop, or another task: this one ends like one that was cancelled.
        task.cancel()
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError as cancelled:
            raise interrupt from cancelled


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", task.get_name())
