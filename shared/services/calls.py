"""Blocking calls that nothing can interrupt, each waited for no longer than its caller can.

Resolving a name is such a call: the C library may take half a minute, whatever its caller wants.
Threads are started when they are first needed, at most a fixed number, and end when nothing has
been asked for a while. A call that its caller gave up runs on in its thread to its own end; when
all threads are held by such calls, further ones wait for a thread until their own time is over.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from shared.errors import WeirkeeperError

T = TypeVar("T")
IDLE_SECONDS = 30.0  # after which a thread without work ends


class Overdue(WeirkeeperError):
    """The call took longer than its caller could wait."""

    transient = True


class _Call(Generic[T]):
    """One call, its end, and what came out."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._done = threading.Event()
        self._given_up = False
        self._error: BaseException | None = None
        self._result: list[T] = []

    def run(self) -> None:
        """Do it, unless nobody waits for it any more."""
        if self._given_up:
            return
        try:
            self._result.append(self._work())
        except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
            self._error = error
        self._done.set()

    def result(self, seconds: float) -> T:
        """Wait for the end; see BoundedCalls.call."""
        if not self._done.wait(max(seconds, 0.0)):
            self._given_up = True
            raise Overdue(f"expected an answer within {seconds:.1f} s; got none")
        if self._error is not None:
            raise self._error
        return self._result[0]


class BoundedCalls:
    """Makes calls in at most `most` threads.

    Args:
        name: of the threads.
        most: threads at a time.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._calls: queue.SimpleQueue[_Call[object]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # threads that wait, less calls that wait: may be below 0

    def call(self, work: Callable[[], T], seconds: float) -> T:
        """Call, and wait at most so many seconds.

        Raises:
            Overdue: it has not ended, or not even begun.
            BaseException: whatever the call raised.
        """
        asked: _Call[T] = _Call(work)
        with self._lock:
            self._free -= 1
            if self._free < 0 and self._threads < self._most:
                self._threads += 1
                self._free += 1
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
            self._calls.put(asked)  # type: ignore[arg-type]  # its result goes to its caller alone
        return asked.result(seconds)

    def _serve(self) -> None:
        while True:
            try:
                asked = self._calls.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                if self._ends():
                    return
                continue
            asked.run()
            with self._lock:
                self._free += 1

    def _ends(self) -> bool:
        """Whether this thread may go: under the lock that a new call takes, too."""
        with self._lock:
            if not self._calls.empty():
                return False
            self._threads -= 1
            self._free -= 1
            return True
