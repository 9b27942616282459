"""The one read connection of the listener, in a thread of its own.

A thread and not an asynchronous session: every session of ours is opened in one place (deadlines,
settings, errors), and a name server or a database that hangs must not stop the event loop. What
many callers ask while one read is under way is read together next: 64 callers woken by a reconnect
cost two statements.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from shared.errors import DatabaseUnavailable, WeirkeeperError
from shared.jobs.port import Wait
from shared.notices.channels import FANOUT, FINAL
from shared.services.service import ServiceThread

BATCH = 200  # ids of one read
MOST_ASKED = 1000  # questions that may wait for a database that does not answer
STOP = 1.0  # seconds that a stop waits for a read; a daemon thread does not keep the process
TURN = 0.5  # seconds between turns of the loop when nobody asks

log = logging.getLogger(__name__)


class Source(Protocol):
    """What is read from; shared.postgres.answers keeps the promises."""

    def jobs(self, ids: Sequence[str]) -> Mapping[str, Wait]:
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
    """

    def __init__(
        self,
        source: Source,
        on_death: Callable[[BaseException], None],
        turned: Callable[[], None] = lambda: None,
        failed: Callable[[WeirkeeperError], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._turned = turned
        self._failed = failed
        self._asked: queue.SimpleQueue[tuple[str, str, Deliver] | None] = queue.SimpleQueue()
        self._thread = ServiceThread("reads", self._loop, on_death, lambda: self._asked.put(None))

    def start(self) -> None:
        """Begin; the connection is opened by the first question."""
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

    def _loop(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self._turned()
                self._answer(self._batch())
        finally:
            self._source.close()

    def _batch(self) -> list[tuple[str, str, Deliver]]:
        found = []
        try:
            item = self._asked.get(timeout=TURN)
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
        try:
            found: Mapping[str, Any] = read(keys)
        except WeirkeeperError as error:
            failure = error
            log.warning("reads: %s", error)
            self._failed(error)
            return lambda _key: Read(error=failure)
        return lambda key: Read(found.get(key), key in found)
