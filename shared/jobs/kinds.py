"""Kinds of job, as data. A kind is handed to the runtime when it is built; nothing registers.

Read by the enqueue path (defaults), by queue processes (limits, backoff) and by their children
(the handler). The handler is named, not imported, so that a process which only enqueues never
loads what it will not run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from shared.backoff import DEFAULT, Backoff
from shared.config.command import Command
from shared.config.queues import is_duration
from shared.errors import ConfigurationError
from shared.jobs.limits import Limits
from shared.jobs.outages import Outage

NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
_HANDLER = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
MAX_NAME = 63
MAX_SEARCHABLE = 8
MAX_ATTEMPTS = MAX_PER_KEY = 2**31 - 1  # what their columns hold
SHORTEST = 0.001  # seconds of a rate's period


@dataclass(frozen=True, slots=True)
class Rate:
    """How often jobs of a kind may start, over all processes: at most `n` in any `per` seconds."""

    n: int
    per: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be kept."""
        if type(self.n) is not int or not 1 <= self.n <= MAX_ATTEMPTS:
            raise ConfigurationError.of("rate: n", "a whole number, 1 or more", self.n, "raise it")
        if not is_duration(self.per) or self.per < SHORTEST:
            raise ConfigurationError.of(
                "rate: per", "at least 1 ms and at most a day", self.per, "give it in seconds"
            )


@dataclass(frozen=True, slots=True)
class Kind:
    r"""One kind of job.

    Attributes:
        name: `[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*`, at most 63 characters.
        queue: name of a declared queue.
        handler: "module:function", called as `function(ctx, args)`; idempotent by contract. Empty
            when the kind, or its queue, names a command.
        max_attempts: tries before the job is discarded, 1 to MAX_ATTEMPTS.
        timeout: seconds one attempt may run; None = the queue's.
        backoff: delays between tries.
        awaited: flush outcomes at once; None = the queue's.
        max_per_key: jobs that run at once with one concurrency key, 1 to MAX_PER_KEY.
        searchable: keys of the args by which jobs may be listed, at most 8.
        rate: how often they may start, over all processes; None = as often as there is room.
        fair: owners take turns, so that many jobs of one do not hold up those of another.
        outage: which exceptions mean that what it depends on is away: its jobs are put off.
        limits: what one run may use: memory, CPU time, open files.
        command: a program and its arguments, started for each job in place of a handler; it speaks
            docs/child_protocol.md.
        environment: what the command gets: "NAME" of the queue process's, or "NAME=value".
        database: False = its handler gets no database: each job runs in a child of its own, a new
            program that was never told where the database is.
    """

    name: str
    queue: str
    handler: str = ""
    max_attempts: int = 10
    timeout: float | None = None
    backoff: Backoff = field(default=DEFAULT)
    awaited: bool | None = None
    max_per_key: int = 1
    searchable: tuple[str, ...] = ()
    outage: Outage | None = None
    limits: Limits | None = None
    rate: Rate | None = None
    fair: bool = False
    command: Sequence[str] = ()
    environment: Sequence[str] = ()
    database: bool = True

    def __post_init__(self) -> None:
        """Refuse a declaration that cannot work."""
        if not is_name(self.name):
            raise ConfigurationError.of(
                "kind name",
                "dotted lower-case words of at most 63 characters",
                self.name,
                "rename the kind",
            )
        self._check_texts()
        self._check_numbers()
        self._check_command()

    @property
    def program(self) -> Command | None:
        """The command that runs each of its jobs; None = it names none."""
        return Command.read(f"kind {self.name}", self.command, self.environment)

    def _check_texts(self) -> None:
        if self.handler != "" and (
            not isinstance(self.handler, str) or not _HANDLER.fullmatch(self.handler)
        ):
            raise self._mistake("handler", '"module:function"', "name a function")
        if not isinstance(self.queue, str):
            raise self._mistake("queue", "the name of a queue", "name one")
        if not isinstance(self.backoff, Backoff):
            raise self._mistake("backoff", "a Backoff", "say Backoff(…), or leave it out")
        if self.rate is not None and not isinstance(self.rate, Rate):
            raise self._mistake("rate", "a Rate", "say Rate(n, per=seconds)")
        if self.outage is not None and not isinstance(self.outage, Outage):
            raise self._mistake("outage", "Outage(…)", "build it with Outage(errors=(…,))")
        if self.limits is not None and not isinstance(self.limits, Limits):
            raise self._mistake("limits", "Limits(…)", "build it with Limits(memory_mib=…)")

    def _check_numbers(self) -> None:
        most = self.max_attempts
        if type(most) is not int or not 1 <= most <= MAX_ATTEMPTS:
            raise self._mistake(
                "max_attempts", f"a whole number from 1 to {MAX_ATTEMPTS}", "set it"
            )
        if self.timeout is not None and not is_duration(self.timeout):
            raise self._mistake("timeout", "more than 0 s and at most a day", "give it in seconds")
        if type(self.max_per_key) is not int or not 1 <= self.max_per_key <= MAX_PER_KEY:
            raise self._mistake(
                "max_per_key", f"a whole number from 1 to {MAX_PER_KEY}", "correct it"
            )
        keys = self.searchable
        if not isinstance(keys, tuple) or len(keys) > MAX_SEARCHABLE or not _all_text(keys):
            raise self._mistake(
                "searchable",
                f"a tuple of at most {MAX_SEARCHABLE} keys",
                "name the keys that people look for",
            )

    def _check_command(self) -> None:
        if type(self.database) is not bool:
            raise self._mistake("database", "True or False", "say False for none")
        if type(self.fair) is not bool:
            raise self._mistake("fair", "True or False", "correct it")
        if self.awaited is not None and type(self.awaited) is not bool:
            raise self._mistake("awaited", "True or False", "leave it out for the queue's")
        if self.program is None:
            if self.handler and self.outage is not None and not self.outage.errors:
                raise self._mistake("outage", "exceptions that mean it", "name them: errors=(…,)")
            return
        if self.handler:
            raise self._mistake("handler", "none beside a command", "name one of the two")
        if not self.database:
            raise self._mistake(
                "database", "True beside a command", "list no variable that tells of one"
            )
        if self.outage is not None and self.outage.errors:
            raise self._mistake(
                "outage", "no errors beside a command, which says so itself", 'answer "away"'
            )
        object.__setattr__(self, "command", tuple(self.command))  # frozen, and to be hashed
        object.__setattr__(self, "environment", tuple(self.environment))

    def _mistake(self, field: str, expected: str, hint: str) -> ConfigurationError:
        what = f"kind {self.name}: {field}"
        return ConfigurationError.of(what, expected, getattr(self, field), hint)


def _all_text(keys: tuple[object, ...]) -> bool:
    return all(isinstance(key, str) for key in keys)


def is_name(name: object) -> bool:
    """Whether it can name a kind, or a periodic job."""
    return isinstance(name, str) and len(name) <= MAX_NAME and bool(NAME.fullmatch(name))
