"""A clock that stands still until it is told to go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.clock import SYSTEM
from shared.errors import InvalidArguments


class StoppedClock:
    """Both kinds of time, moved by `advance` alone.

    Args:
        start: the moment it shows first (aware); None = the real one, so that an application which
            reads the real clock to compute `run_at` agrees with it.
    """

    def __init__(self, start: datetime | None = None) -> None:
        first = SYSTEM.wall() if start is None else start
        if first.tzinfo is None:
            raise InvalidArguments(
                f"start: expected a datetime with a time zone; got {first!r}; add tzinfo=UTC"
            )
        self._start = first.astimezone(UTC)
        self._passed = timedelta()

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._passed.total_seconds()

    def wall(self) -> datetime:
        """The moment, in UTC."""
        return self._start + self._passed

    def advance(self, seconds: float) -> None:
        """Let time pass.

        Args:
            seconds: how much, 0 or more.
        """
        if seconds < 0:
            raise InvalidArguments(f"advance: expected 0 s or more; got {seconds!r}")
        self._passed += timedelta(seconds=seconds)
