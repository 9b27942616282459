"""The one read connection of a process whose callers wait, in a thread of its own.

A thread and not an asynchronous session: every session of ours is opened in one place (deadlines,
settings, errors), and a name server or a database that hangs must not stop an event loop, nor keep
a caller beyond its bound: a server that stands still keeps its connections open and says nothing.
What many callers ask while one read is under way is read together next: 64 callers woken by a
reconnect cost two statements.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol, TypeVar

from shared.errors import DatabaseUnavailable, WeirkeeperError
from shared.notices.channels import FANOUT, FINAL
from shared.services.service import ServiceThread

BATCH = 200  # ids of one read
MOST_ASKED = 1000  # questions that may wait for a database that does not answer
STOP = 1.0  # seconds that a stop waits for a read; a daemon thread does not keep the process
READ = 3.0  # seconds that one read may take; the server itself ends it after 2
TURN = 0.5  # seconds between turns of the loop when nobody asks

log = logging.getLogger(__name__)
T = TypeVar("T")


class Source(Protocol):
    """What is read from; shared.postgres.application.answers keeps the promises."""

    def open(self) -> None:
        """Connect, and make ready to read."""
        ...

    def jobs(self, ids: Sequence[str]) -> Mapping[str, Any]:
        """How jobs stand, by id; an unknown one is left out."""
        ...

    def fanouts(self, ids: Sequence[str]) -> Mapping[str, Mapping[str, str] | None]:
        """Job ids by subscription, by event; None = not yet; an unknown one is left out."""
        ...

    def close(self) -> None:
        """End the connection."""
        ...


class Read(NamedTuple):
    """What came of a question. `error`: the database could not be asked."""

    found: Any = None
    known: bool = False
    error: WeirkeeperError | None = None


Deliver = Callable[[Read], None]


class Reads:
    """Answers questions in batches.

    Args:
        source: the connection.
        on_death: called when the loop dies.
        turned: called once a turn.
        failed: called with each error.
        turn: seconds between turns when nobody asks.
    """

    def __init__(
        self,
        source: Source,
        on_death: Callable[[BaseException], None],
        turned: Callable[[], None] = lambda: None,
        failed: Callable[[WeirkeeperError], None] = lambda _: None,
        turn: float = TURN,
    ) -> None:
        self._source = source
        self._turn = turn
        self._turned = turned
        self._failed = failed
        self._asked: queue.SimpleQueue[tuple[str, str, Deliver] | None] = queue.SimpleQueue()
        self._thread = ServiceThread("reads", self._loop, on_death, lambda: self._asked.put(None))

    def start(self) -> None:
        """Begin to connect; whoever asks before that, or in vain, is answered by another try."""
        self._thread.start()

    def started(self) -> bool:
        """Whether the loop runs."""
        return self._thread.started()

    def stop(self) -> None:
        """End the loop and its connection."""
        self._thread.stop(STOP)

    def ask(self, channel: str, key: str, deliver: Deliver) -> None:
        """Ask how something stands.

        Args:
            channel: FINAL for a job, FANOUT for an event.
            key: its id.
            deliver: called once, from the loop's thread or at once.
        """
        if self._asked.qsize() >= MOST_ASKED:
            deliver(Read(error=DatabaseUnavailable("too many questions are not answered yet")))
        else:
            self._asked.put((channel, key, deliver))

    def read(self, channel: str, key: str) -> Read:
        """Ask, and wait for the answer, at most READ seconds; from any thread."""
        answers: queue.SimpleQueue[Read] = queue.SimpleQueue()
        self.ask(channel, key, answers.put)
        try:
            return answers.get(timeout=READ)
        except queue.Empty:
            return _late()

    async def read_async(self, channel: str, key: str) -> Read:
        """The same on an event loop."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Read] = loop.create_future()

        def deliver(read: Read) -> None:
            on_loop(loop, lambda: None if answer.done() else answer.set_result(read))

        self.ask(channel, key, deliver)
        try:
            async with asyncio.timeout(READ):
                return await answer
        except TimeoutError:
            return _late()

    def _loop(self, stop: threading.Event) -> None:
        try:
            self._turned()
            if self._asked.empty():  # else the question connects
                self._tried(self._source.open)
            while not stop.is_set():
                self._turned()
                self._answer(self._batch())
        finally:
            self._source.close()

    def _batch(self) -> list[tuple[str, str, Deliver]]:
        found = []
        try:
            item = self._asked.get(timeout=self._turn)
            while item is not None:
                found.append(item)
                if len(found) == BATCH:
                    break
                item = self._asked.get_nowait()
        except queue.Empty:
            pass
        return found

    def _answer(self, asked: Sequence[tuple[str, str, Deliver]]) -> None:
        for channel in (FINAL, FANOUT):
            mine = [(key, deliver) for name, key, deliver in asked if name == channel]
            if mine:
                answers = self._read(channel, sorted({key for key, _ in mine}))
                for key, deliver in mine:
                    deliver(answers(key))

    def _read(self, channel: str, keys: Sequence[str]) -> Callable[[str], Read]:
        read = self._source.jobs if channel == FINAL else self._source.fanouts
        found = self._tried(lambda: read(keys))
        if isinstance(found, WeirkeeperError):
            return lambda _key: Read(error=found)
        return lambda key: Read(found.get(key), key in found)

    def _tried(self, act: Callable[[], T]) -> T | WeirkeeperError:
        try:
            return act()
        except WeirkeeperError as error:
            log.warning("reads: %s", error)
            self._failed(error)
            return error


def on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Call something on an event loop, from any thread; the loop may have ended meanwhile."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


def _late() -> Read:
    return Read(error=DatabaseUnavailable(f"no answer within {READ:g} s"))
