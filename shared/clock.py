"""The one place that reads a clock.

Two kinds of time: `monotonic` for spans and deadlines inside a process, `wall` for what people
read. What several processes compare is the database's clock, never one of these.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What code that needs the time is handed, so that tests need not sleep."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    def wall(self) -> datetime:
        """The moment, in UTC."""
        ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """Seconds on CLOCK_MONOTONIC."""
        return time.monotonic()

    def wall(self) -> datetime:
        """The moment, in UTC."""
        return datetime.now(UTC)


def cpu_seconds() -> float:
    """CPU time that this process has used. A call of the kernel: not for every job."""
    return time.process_time()


SYSTEM = SystemClock()
