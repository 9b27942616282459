"""How a program learns that it must stop: a signal, or the death of one of its loops.

The signal handler only writes to an event descriptor, which is safe at any instruction; the main
loop waits on that descriptor, alone (`wait`) or among others (`fileno`).
"""

from __future__ import annotations

import os
import select
import signal
from types import FrameType

from shared.clock import SYSTEM


def end_at_once() -> None:
    """Have SIGTERM and SIGINT end the process, until `StopSignal.install`.

    For what comes first: an application's import may take long or hang, has nobody who waits on a
    descriptor, and leaves nothing to put in order.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


class StopSignal:
    """Counts requests to stop. The first asks for a drain, the second shortens it.

    Attributes:
        requests: how many came.
        requested_at: when the first came (seconds of the monotonic clock), or None.
        failure: the error of a loop that died, which makes the exit code 1.
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.requests = 0
        self.requested_at: float | None = None
        self.failure: BaseException | None = None

    def install(self) -> None:
        """Take SIGTERM and SIGINT as requests; call from the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.request()

    def request(self) -> None:
        """Ask to stop."""
        if self.requested_at is None:
            self.requested_at = SYSTEM.monotonic()
        self.requests += 1
        os.eventfd_write(self._fd, 1)

    def fail(self, error: BaseException) -> None:
        """Ask to stop because a loop died; the first error is kept."""
        self.failure = self.failure or error
        self.request()

    @property
    def requested(self) -> bool:
        """Whether anything asked to stop."""
        return self.requests > 0

    def fileno(self) -> int:
        """A descriptor that is readable from the first request on."""
        return self._fd

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until a stop is requested, at most `seconds`; return whether it was."""
        if not self.requested:
            select.select([self._fd], [], [], seconds)
        return self.requested
