"""While what a kind depends on is away, its jobs are put off instead of failing. Data and rules.

A kind declares which exceptions mean "away" (`Kind(outage=Outage(…))`). Such an exception spends no
attempt: the job waits `delay` seconds and is tried again, for as long as `horizon`; then it counts
as a failed attempt, as any other would. Found by whatever runs handlers; the rules of what becomes
of the job stay in shared.jobs.retry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.config.queues import is_duration
from shared.errors import ConfigurationError
from shared.importing import NotLoaded, load

CAUSE = "outage"  # of such a run, in the log of attempts
DAY = 86_400.0
LONGEST_HORIZON = 30 * DAY


@dataclass(frozen=True, slots=True)
class Outage:
    """What means that a dependency is away, and how long that is waited for.

    Attributes:
        errors: exceptions: classes, or their names as "package.module.Name", which are imported
            only where jobs run. Subclasses count. None for a command, which answers "away".
        delay: seconds until the next try, more than 0 and at most a day; up to 20 % is added.
        horizon: seconds for which tries are free, from the first one that found it away; at least
            `delay`, at most 30 days.
    """

    errors: tuple[str | type[Exception], ...] = ()
    delay: float = 60.0
    horizon: float = 6 * 3600.0

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not isinstance(self.errors, tuple):
            raise _mistake("errors", "a tuple of exceptions", self.errors)
        for named in self.errors:
            if not (isinstance(named, str) or _is_exception(named)):
                raise _mistake("errors", "exceptions or their dotted names", named)
        if not is_duration(self.delay):
            raise _mistake("delay", "more than 0 s and at most a day", self.delay)
        if not (_is_number(self.horizon) and self.delay <= self.horizon <= LONGEST_HORIZON):
            raise _mistake("horizon", "at least the delay, at most 30 days", self.horizon)

    def load(self, kind: str) -> tuple[type[Exception], ...]:
        """Import the exceptions.

        Raises:
            ConfigurationError: one is not there, or is no exception.
        """
        return tuple(_load(kind, named) for named in self.errors)


def given_up(error: str, outage: Outage) -> str:
    """What is told of a run that failed because its dependency was away for too long."""
    return f"{error} (away for longer than the {outage.horizon:g} s that tries are free)"


def _load(kind: str, named: str | type[Exception]) -> type[Exception]:
    if not isinstance(named, str):
        return named
    module, _, name = named.replace(":", ".").rpartition(".")
    found: Any = None
    problem = "it is none"
    try:
        found = load(module or "builtins", name)
    except NotLoaded as failure:
        problem = str(failure)
    if not _is_exception(found):
        raise ConfigurationError.of(
            f"kind {kind}: outage.errors",
            "names of importable exceptions",
            named,
            f"correct it ({problem})",
        )
    error_class: type[Exception] = found
    return error_class


def _is_exception(found: object) -> bool:
    return isinstance(found, type) and issubclass(found, Exception)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _mistake(what: str, expected: str, got: object) -> ConfigurationError:
    return ConfigurationError.of(f"outage: {what}", expected, got, "correct it")
