"""One call's allowance: its deadline, the bytes that may come in, and where the time went.

Handed to everything below the client; whoever waits asks `remaining`, whoever receives `count`s.
"""

from __future__ import annotations

from shared.clock import Clock
from shared.webhooks.codes import ERRORS
from workers.sideeffects.http.exchange import Limits

TIMEOUTS = {
    "dns": "dns_timeout",
    "connect": "connect_timeout",
    "tls": "tls_timeout",
    "write": "write_timeout",
    "ttfb": "response_timeout",
    "body": "response_timeout",
}


class Failed(Exception):
    """The call got no answer that can be used.

    Attributes:
        code: of shared.webhooks.codes.
        hidden: for the operator's log.
        rule: of shared.webhooks.denied, when a rule forbade it.
        told: for the owner; by default what the code means.
    """

    def __init__(self, code: str, hidden: str = "", rule: str = "", told: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.hidden = hidden
        self.rule = rule
        self.told = told or ERRORS[code][1]


class Attempt:
    """What one call may still use.

    Args:
        limits: of the call.
        clock: tells the time.
        until: moment of the monotonic clock that it must not outlive (a lease's end); None = none.

    Attributes:
        times: seconds by phase so far.
        received: bytes that came in.
        peer: who answers, once connected.
        hung_up: the other side has ended the connection.
    """

    def __init__(self, limits: Limits, clock: Clock, until: float | None = None) -> None:
        self._clock = clock
        self._limits = limits
        begun = clock.monotonic()
        self._deadline = begun + limits.seconds
        if until is not None:
            self._deadline = min(self._deadline, until)
        self._phase = ""
        self._entered = begun
        self.times: dict[str, float] = {}
        self.received = 0
        self.peer = ""
        self.hung_up = False

    @property
    def phase(self) -> str:
        """Where it stands."""
        return self._phase

    def enter(self, phase: str) -> None:
        """Begin a phase, which ends the one before; "" ends the last."""
        now = self._clock.monotonic()
        if self._phase:
            spent = now - self._entered
            self.times[self._phase] = self.times.get(self._phase, 0.0) + spent
        self._phase, self._entered = phase, now

    def shorten(self, seconds: float) -> None:
        """Allow at most so many seconds from now on."""
        self._deadline = min(self._deadline, self._clock.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds until the deadline.

        Raises:
            Failed: none are left.
        """
        left = self._deadline - self._clock.monotonic()
        if left <= 0:
            raise Failed(TIMEOUTS[self._phase])
        return left

    def count(self, number: int) -> None:
        """Account for bytes that came in.

        Raises:
            Failed: more than may come.
        """
        self.received += number
        if self.received > self._limits.wire_bytes:
            raise Failed("response_too_large")
