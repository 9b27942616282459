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
from shared.jobs.kinds import is_name
from shared.jobs.schedule import Schedule
from shared.jsonvalue import encode_object

Missed = Literal["once", "skip"]
LONGEST = 366 * 86_400  # seconds between ticks
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)  # a schedule is asked for the tick after it: is it one?


@dataclass(frozen=True, slots=True)
class Periodic:
    """One periodic job.

    Attributes:
        name: dotted lower-case words, at most 63 characters.
        kind: name of the kind that is enqueued.
        args: of each job.
        every: seconds between ticks, at least 1; or
        cron: five fields ("30 4 * * *"), or "@daily" and the like, in `timezone`.
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
        if not is_name(self.name):
            raise ConfigurationError.of(
                "periodic name",
                "dotted lower-case words of at most 63 characters",
                self.name,
                "rename the periodic job",
            )
        if not isinstance(self.kind, str):
            raise self._mistake("kind", "the name of a kind", "name one")
        if (self.every is None) == (self.cron is None):
            raise ConfigurationError.of(
                f"periodic {self.name}",
                "one of every and cron",
                {"every": self.every, "cron": self.cron},
                "give one of them",
            )
        if self.every is not None and not (
            type(self.every) in (int, float) and 1 <= self.every <= LONGEST
        ):
            raise self._mistake("every", "1 s to a year", "give it in seconds")
        if self.missed not in ("once", "skip"):
            raise self._mistake("missed", '"once" or "skip"', "correct it")
        if self.at_first_start is not None and type(self.at_first_start) is not bool:
            raise self._mistake("at_first_start", "True or False", "leave it out for the default")
        self._check_what()

    def _check_what(self) -> None:
        if not isinstance(self.args, Mapping):
            raise self._mistake("args", "a JSON object", "give a dict")
        if self.cron is not None and not isinstance(self.cron, str):
            raise self._mistake("cron", 'five fields ("30 4 * * *")', "give it as text")
        if not isinstance(self.timezone, str):
            raise self._mistake("timezone", "an IANA name", "leave it out for UTC")
        try:
            self.schedule.next_after(_ANY_DAY)
            encode_object(dict(self.args), f"periodic {self.name}: args")
        except ConfigurationError as error:
            raise ConfigurationError(f"periodic {self.name}: {error}") from error
        except InvalidArguments as error:
            raise ConfigurationError(str(error)) from error

    def _mistake(self, field: str, expected: str, hint: str) -> ConfigurationError:
        what = f"periodic {self.name}: {field}"
        return ConfigurationError.of(what, expected, getattr(self, field), hint)

    @property
    def schedule(self) -> Schedule:
        """When it ticks."""
        return Schedule(self.every, self.cron, self.timezone)

    @property
    def starts_at_once(self) -> bool:
        """Whether its first tick is the moment of its first declaration ever."""
        return self.every is not None if self.at_first_start is None else self.at_first_start
