"""When a periodic job ticks: intervals and cron, in a time zone, without state.

Stands under shared.jobs.periodic (declarations) and the adapters, which keep the next tick and ask
here for the one after it. `now` is always the database's clock, handed in; nothing here reads one.

Cron follows Debian's, as cronsim does. An entry for a fixed time that the spring change leaves out
runs once, right after the gap; one that the autumn change repeats runs once, the first time.
Entries with `*` in minute or hour follow real time: every hour stays every hour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from shared.errors import ConfigurationError

LONGEST_RUN = 600.0  # seconds; a run may take its interval, at most this
FIELDS = 5  # of cron: minute, hour, day of month, month, day of week
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}  # as crontab(5) has them; "@reboot" is none: nothing runs because a process started
_SAMPLED = 10  # ticks that a cron schedule's shortest interval is taken from


@dataclass(frozen=True, slots=True)
class Schedule:
    """Every so many seconds, or by cron; exactly one of both.

    Attributes:
        every: seconds between ticks.
        cron: five fields, or one of NICKNAMES.
        timezone: IANA name, for cron.
    """

    every: float | None
    cron: str | None
    timezone: str = "UTC"

    def next_after(self, now: datetime, tick: datetime | None = None) -> datetime:
        """The first tick later than `now`.

        Args:
            now: an aware moment.
            tick: an earlier tick, which intervals are counted from; None = from now.

        Returns:
            In UTC.

        Raises:
            ConfigurationError: the cron fields or the time zone cannot be read, or never come.
        """
        if self.every is None:
            return self._next_by_cron(now)
        interval = timedelta(seconds=self.every)
        if tick is None or tick > now:  # a tick in the future: the clock went back
            return (now + interval).astimezone(UTC)
        return (tick + ((now - tick) // interval + 1) * interval).astimezone(UTC)

    def corrected(self, next_at: datetime | None, now: datetime) -> datetime | None:
        """What the next tick must be, when the stored one cannot be right; else None.

        It cannot when there is none yet, when the declaration changed, when the clock went back
        since, or when the time zone's rules changed. A tick that is due stays due.
        """
        if next_at is not None and next_at <= now:
            return None
        right = self.next_after(now)
        if next_at is None or next_at > right:
            return right
        return right if self.every is None and next_at != right else None

    def shortest(self, now: datetime) -> float:
        """Seconds between ticks: the interval, or the shortest of the next few of a cron."""
        if self.every is not None:
            return self.every
        moments = [self.next_after(now)]
        for _ in range(_SAMPLED):
            moments.append(self.next_after(moments[-1]))
        return min((after - before).total_seconds() for before, after in pairwise(moments))

    def describe(self) -> str:
        """For people: "every 60 s", "30 4 * * * Europe/Berlin"."""
        return f"{self.cron} {self.timezone}" if self.every is None else f"every {self.every:g} s"

    def _next_by_cron(self, now: datetime) -> datetime:
        problem = "no such moment in 50 years"
        try:
            for tick in self._iterate(now):
                # Begun in the repeated hour of autumn, it offers the first time of that hour again.
                if tick > now:
                    return tick.astimezone(UTC)
        except (CronSimError, ValueError, OSError, KeyError) as error:
            problem = str(error)
        raise ConfigurationError.of(
            "cron", "five fields and an IANA time zone", self.describe(), f"correct it ({problem})"
        )

    def _iterate(self, now: datetime) -> Iterator[datetime]:
        """Ticks in order; a sixth field, of seconds, would change what cronsim does at a shift."""
        given = (self.cron or "").strip()
        fields = NICKNAMES.get(given, given)
        if len(fields.split()) != FIELDS:
            raise CronSimError(f"neither five fields nor one of {', '.join(NICKNAMES)}")
        return iter(CronSim(fields, now.astimezone(ZoneInfo(self.timezone))))
