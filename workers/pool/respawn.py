"""When a child that is gone may be replaced: at once the first time, then later and later. Pure."""

from __future__ import annotations

from math import inf

from shared.backoff import RECONNECT
from shared.clock import Clock

MOST_BOOT_FAILURES = 10  # in a row; then something is wrong that another child will not mend


class PoolBroken(Exception):
    """No child can be started."""


class Respawn:
    """Counts deaths, and says when the next child may start.

    Attributes:
        at: moment (monotonic) from which on children may be started.
        boot_failures: children in a row that never said hello.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deaths = 0  # unexpected ones since a job last ended well or badly by itself
        self.boot_failures = 0
        self.at = -inf

    @property
    def allowed(self) -> bool:
        """Whether a child may be started now."""
        return self._clock.monotonic() >= self.at

    def booted(self) -> None:
        """A child said hello."""
        self.boot_failures = 0

    def worked(self) -> None:
        """A child told of a job's end."""
        self._deaths = 0

    def boot_failed(self) -> None:
        """A child could not be started, or never said hello.

        Raises:
            PoolBroken: it is of no use to try again.
        """
        self.boot_failures += 1
        if self.boot_failures >= MOST_BOOT_FAILURES:
            raise PoolBroken(
                f"{self.boot_failures} children in a row died or hung before they were ready"
            )
        self._wait(self.boot_failures)

    def died(self) -> None:
        """A child died that nobody had told to."""
        self._deaths += 1
        self._wait(self._deaths - 1)

    def _wait(self, failures: int) -> None:
        if failures:
            self.at = self._clock.monotonic() + RECONNECT.delay(failures)
