"""Periodic jobs, as data: what is enqueued again and again, and when.

Handed to the runtime as part of the application; the schedule itself is kept in the database, so
that every tick starts exactly one job, whatever the number of processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from shared.errors import ConfigurationError, InvalidArguments
from shared.jobs.kinds import MAX_NAME, NAME
from shared.jobs.schedule import Schedule
from shared.jsonvalue import encode_object

Missed = Literal["once", "skip"]
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)  # a schedule is asked for the tick after it: is it one?


@dataclass(frozen=True, slots=True)
class Periodic:
    """One periodic job.

    Attributes:
        name: dotted lower-case words, at most 63 characters.
        kind: name of the kind that is enqueued.
        args: of each job.
        every: seconds between ticks, at least 1; or
        cron: five fields ("30 4 * * *"), in `timezone`.
        timezone: an IANA name.
        missed: what becomes of ticks that passed while nothing ran: "once" starts one job for all
            of them, "skip" waits for the next tick.
        at_first_start: run when it is declared for the first time ever, and not again at later
            starts; None = an interval does, a cron waits for its first moment.
    """

    name: str
    kind: str
    args: Mapping[str, Any] = field(default_factory=dict)
    every: float | None = None
    cron: str | None = None
    timezone: str = "UTC"
    missed: Missed = "once"
    at_first_start: bool | None = None

    def __post_init__(self) -> None:
        """Refuse a declaration that cannot work."""
        if len(self.name) > MAX_NAME or not NAME.fullmatch(self.name):
            raise ConfigurationError.of(
                "periodic name",
                "dotted lower-case words of at most 63 characters",
                self.name,
                "rename the periodic job",
            )
        if (self.every is None) == (self.cron is None):
            raise ConfigurationError.of(
                f"periodic {self.name}",
                "one of every and cron",
                {"every": self.every, "cron": self.cron},
                "give one of them",
            )
        if self.every is not None and not 1 <= self.every <= 366 * 86_400:
            raise ConfigurationError.of(
                f"periodic {self.name}: every", "1 s to a year", self.every, "give it in seconds"
            )
        if self.missed not in ("once", "skip"):
            raise ConfigurationError.of(
                f"periodic {self.name}: missed", '"once" or "skip"', self.missed, "correct it"
            )
        self._check_what()

    def _check_what(self) -> None:
        try:
            self.schedule.next_after(_ANY_DAY)
            encode_object(dict(self.args), f"periodic {self.name}: args")
        except ConfigurationError as error:
            raise ConfigurationError(f"periodic {self.name}: {error}") from error
        except InvalidArguments as error:
            raise ConfigurationError(str(error)) from error

    @property
    def schedule(self) -> Schedule:
        """When it ticks."""
        return Schedule(self.every, self.cron, self.timezone)

    @property
    def starts_at_once(self) -> bool:
        """Whether its first tick is the moment of its first declaration ever."""
        return self.every is not None if self.at_first_start is None else self.at_first_start
