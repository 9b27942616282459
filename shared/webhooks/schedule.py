"""When a failed delivery is tried again, until when, and what a receiver's Retry-After asks for.

The default is the job layer's (`shared.backoff.WEBHOOK`): 18 attempts in about 5.3 days. An
endpoint may have its own list of steps. Used by the delivery and by whatever shows "next try".
Jitter is added by the job layer, and only ever added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shared.backoff import JITTER, WEBHOOK
from shared.errors import InvalidArguments

ATTEMPTS = 18  # of the default schedule
MOST_STEPS = 30
LONGEST = 10 * 86_400.0  # seconds, all steps of an endpoint's own schedule together
LONGEST_PAUSE = 86_400.0  # seconds that a Retry-After is honoured for
_DIGITS = re.compile(r"[0-9]{1,18}")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_DATE = rf"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{{2}}) ({'|'.join(_MONTHS)}) ([0-9]{{4}})"
_IMF = re.compile(rf"{_DATE} ([0-9]{{2}}):([0-9]{{2}}):([0-9]{{2}}) GMT")


@dataclass(frozen=True, slots=True)
class Schedule:
    """Delays after each failed attempt, in seconds, without jitter."""

    steps: tuple[float, ...]

    @property
    def attempts(self) -> int:
        """How many tries there are."""
        return len(self.steps) + 1

    def delay(self, attempt: int) -> float | None:
        """Seconds to wait after try number `attempt` (from 1) failed; None = it was the last."""
        return self.steps[attempt - 1] if 1 <= attempt <= len(self.steps) else None

    def give_up_at(self, created_at: datetime) -> datetime:
        """When a delivery is given up, whatever put it off: the latest moment of the last try.

        Args:
            created_at: of the delivery.
        """
        return created_at + timedelta(seconds=sum(self.steps) * (1 + JITTER) + LONGEST_PAUSE)


DEFAULT = Schedule(tuple(WEBHOOK.delay(attempt) for attempt in range(1, ATTEMPTS)))


def own_schedule(steps: Sequence[float]) -> Schedule:
    """An endpoint's own schedule.

    Args:
        steps: seconds after the first failure, the second, …; each at least 1. Empty: one try.

    Raises:
        InvalidArguments: too many steps, too long, or something that is no number of seconds.
    """
    if len(steps) > MOST_STEPS:
        raise InvalidArguments(f"schedule: expected at most {MOST_STEPS} steps; got {len(steps)}")
    for step in steps:
        if isinstance(step, bool) or not isinstance(step, int | float) or not 1 <= step <= LONGEST:
            raise InvalidArguments(
                f"schedule: expected seconds from 1 to {LONGEST:.0f}; got {step!r}"
            )
    if sum(steps) > LONGEST:
        raise InvalidArguments(
            f"schedule: expected at most {LONGEST:.0f} seconds (10 days) in all; got {sum(steps):g}"
        )
    return Schedule(tuple(float(step) for step in steps))


def retry_after(value: str, now: datetime) -> float | None:
    """Seconds that a `Retry-After` asks for, from now on, at most `LONGEST_PAUSE`.

    Args:
        value: digits, or a date in the one form that HTTP still writes (IMF-fixdate).
        now: the moment of the answer, in UTC; rounded down to the second, so that a pause is never
            shorter than asked for.

    Returns:
        0 for a moment that has passed; None for everything that is neither: it is ignored.
    """
    text = value.strip(" \t")
    if _DIGITS.fullmatch(text):
        return min(float(text), LONGEST_PAUSE)
    found = _IMF.fullmatch(text)
    if found is None:
        return None
    day, month, year, hour, minute, second = found.groups()
    try:
        moment = datetime(
            int(year),
            _MONTHS.index(month) + 1,
            int(day),
            int(hour),
            int(minute),
            min(int(second), 59),  # a leap second
            tzinfo=UTC,
        )
    except ValueError:
        return None
    seconds = (moment - now.replace(microsecond=0)).total_seconds()
    return min(max(seconds, 0.0), LONGEST_PAUSE)
