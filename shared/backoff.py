"""How long to wait before the next try: the one place with randomness.

Used by the completer (job retries) and by every loop that reconnects. The numbers are the
design's: default 1 s doubling to 15 min; jitter is uniform in [0, 20 %] and only ever added.
"""

from __future__ import annotations

import random
import secrets
from contextlib import suppress
from dataclasses import dataclass

from shared.errors import ConfigurationError

JITTER = 0.20
LONGEST_DELAY = 10 * 365 * 86_400.0  # seconds; beyond it a delay is a mistake
_MAX_EXPONENT = 60  # clamped before the power: attempt 5,000 must not overflow a float


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays in seconds: `base * factor ** (attempt - 1)`, at most `cap`.

    Attributes:
        base: of the first, 0 to ten years.
        factor: 1 or more.
        cap: of all, 0 to ten years.
        steps: when given, lists the delays outright; the last one repeats.
    """

    base: float = 1.0
    factor: float = 2.0
    cap: float = 900.0
    steps: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what would fail at the first failure of a job, in the process that judges it."""
        if not isinstance(self.steps, tuple):
            raise _mistake("steps", "a tuple of seconds", self.steps)
        for field, seconds in (
            ("base", self.base),
            ("cap", self.cap),
            *(("steps", step) for step in self.steps),
        ):
            if not (_is_number(seconds) and 0 <= seconds <= LONGEST_DELAY):
                raise _mistake(field, "0 s to ten years", seconds)
        if not (_is_number(self.factor) and 1 <= self.factor < float("inf")):
            raise _mistake("factor", "a number, 1 or more", self.factor)

    def delay(self, attempt: int) -> float:
        """Seconds to wait after try number `attempt` (from 1) failed, without jitter."""
        nth = max(attempt, 1)
        if self.steps:
            return self.steps[min(nth, len(self.steps)) - 1]
        with suppress(OverflowError):  # of a large factor, whatever the exponent
            return min(self.cap, self.base * float(self.factor) ** min(nth - 1, _MAX_EXPONENT))
        return self.cap if self.base else 0.0


def _is_number(value: object) -> bool:
    return type(value) in (int, float)


def _mistake(field: str, expected: str, got: object) -> ConfigurationError:
    return ConfigurationError.of(f"backoff: {field}", expected, got, "give it in seconds")


DEFAULT = Backoff()
MAIL = Backoff(base=20.0, factor=3.0, cap=20.0 * 3**7)
WEBHOOK = Backoff(steps=(5, 300, 1_800, 7_200, 18_000, 36_000))
RECONNECT = Backoff(base=0.1, factor=2.0, cap=5.0)
FAILING_PASS = Backoff(base=2.0, factor=2.0, cap=60.0)


def jittered(seconds: float) -> float:
    """Add up to 20 % to a delay, so that what failed together does not return together."""
    return seconds * (1.0 + random.uniform(0.0, JITTER))  # noqa: S311  (spreading, not secrecy)


def random_token() -> int:
    """63 random bits: a lease token that no other claim will ever bear."""
    return secrets.randbits(63)


def random_bytes(number: int) -> bytes:
    """Bytes that nobody can guess: secrets, and numbers used once."""
    return secrets.token_bytes(number)
