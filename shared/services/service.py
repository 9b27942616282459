"""The one contract of everything that runs, and the one place that starts threads.

`start` returns when the service works (or raises), `stop` is idempotent, waits, and may come
before `start`. A thread that dies of an error tells `on_death`, which ends the process: "up but
idle" is the worst state.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

log = logging.getLogger(__name__)


class Service(Protocol):
    """Something that runs in a process."""

    def start(self) -> None:
        """Begin; return when it works."""
        ...

    def started(self) -> bool:
        """Whether it runs now."""
        ...

    def stop(self) -> None:
        """End and wait for the end; harmless when repeated or before `start`."""
        ...


class ServiceThread:
    """A loop in a thread of its own.

    Args:
        name: of the thread and in logs.
        body: the loop; must return soon after the event that it is handed is set.
        on_death: called with the error when the loop raises.
        wake: called by `stop` after the event is set, to end a wait that the event cannot.
    """

    def __init__(
        self,
        name: str,
        body: Callable[[threading.Event], None],
        on_death: Callable[[BaseException], None],
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._body = body
        self._on_death = on_death
        self._wake = wake
        self._stop = threading.Event()
        self._starting = threading.Lock()  # a thread that is known is one that can be joined
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread; nothing happens when stop came first or it already runs."""
        with self._starting:
            if self._stop.is_set() or self._thread is not None:
                return
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def started(self) -> bool:
        """Whether the loop runs."""
        return self._thread is not None and self._thread.is_alive()

    def stop(self, seconds: float = 30.0) -> None:
        """Ask the loop to end and wait for it, at most `seconds`."""
        self._stop.set()
        self._wake()
        with self._starting:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def _run(self) -> None:
        try:
            self._body(self._stop)
        except BaseException as error:
            log.exception("loop %s died", self._name)
            self._on_death(error)


def ticker(
    name: str, seconds: float, tick: Callable[[], None], on_death: Callable[[BaseException], None]
) -> ServiceThread:
    """A thread that calls `tick` at once and then every `seconds`."""

    def body(stop: threading.Event) -> None:
        while True:
            tick()
            if stop.wait(seconds):
                return

    return ServiceThread(name, body, on_death)
