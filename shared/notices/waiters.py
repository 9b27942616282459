"""Who waits for what, bounded: at most 64 callers a channel; the next is refused, never queued.

Stands between a notice source (which calls `heard` and `missed`) and callers that wait, in threads
or on an event loop: a caller brings its own way to be woken. Being woken means "look again",
nothing more. Thread-safe. Must never read what happened: callers do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shared.errors import WaitersFull
from shared.notices.channels import CHANNELS, ids_in

LIMIT = 64
Wake = Callable[[], None]


class Waiters:
    """The waiters of all channels of one process.

    Args:
        limit: most callers of one channel at once.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        # Insertion order, so that callers are woken in the order in which they came.
        self._waiting: dict[str, dict[object, tuple[str, Wake]]] = {name: {} for name in CHANNELS}

    @contextmanager
    def register(self, channel: str, key: str, wake: Wake) -> Iterator[None]:
        """Be woken while inside. Register first, then read, then wait, then read again.

        Args:
            channel: one of CHANNELS.
            key: id that is waited for.
            wake: called from any thread, any number of times; must return at once.

        Raises:
            WaitersFull: as many wait already as may.
        """
        ticket = object()
        with self._lock:
            waiting = self._waiting[channel]
            if len(waiting) >= self._limit:
                raise WaitersFull(
                    f"waiters: expected fewer than {self._limit} callers that wait; got as many; "
                    "look again later"
                )
            waiting[ticket] = (key, wake)
        try:
            yield
        finally:
            with self._lock:
                del waiting[ticket]

    def count(self, channel: str) -> int:
        """How many wait on a channel now."""
        return len(self._waiting[channel])

    def any(self) -> bool:
        """Whether anybody waits."""
        return any(self._waiting.values())

    def heard(self, channel: str, payload: str) -> None:
        """Wake whoever waits for what a notice names; what it says otherwise is ignored."""
        named = set(ids_in(channel, payload))
        if named:
            self._wake(wake for key, wake in self._snapshot(channel) if key in named)

    def missed(self) -> None:
        """Wake everybody: notices may have been lost, so all must look again."""
        for channel in CHANNELS:
            self._wake(wake for _, wake in self._snapshot(channel))

    def _snapshot(self, channel: str) -> list[tuple[str, Wake]]:
        with self._lock:
            return list(self._waiting[channel].values())

    def _wake(self, wakes: Iterator[Wake]) -> None:
        for wake in wakes:
            wake()
