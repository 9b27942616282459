"""The queue table, as data: starting values, tuned by measurement (docs/operations.md).

Read by settings (limits, budget), by the relay and the enqueue path (which queue a kind is on),
and by each queue process. An application adds its own with `App(queues=[…])`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from shared.config.command import Command
from shared.errors import ConfigurationError

LONGEST = 86_400  # seconds
NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")


@dataclass(frozen=True, slots=True)
class Queue:
    """One queue: its own limit and its own process, so that none starves another.

    Attributes:
        name: `[a-z][a-z0-9_]{0,40}`; in program names `_` becomes `-`.
        children: most child processes of one queue process, at least 1.
        timeout: seconds a job may run when its kind does not say, above 0.
        poll: seconds between looks while the process cannot sleep, above 0; taken as 0.1 at most.
            One that sleeps is woken, and looks every second.
        awaited: a request waits on its jobs, so outcomes are flushed at once.
        cap: most of its jobs that run at once over all processes; None = their children's number.
        recycle_jobs, recycle_seconds, recycle_mib: a child is replaced, between jobs, that has run
            so many, lived so long, or grown by so much memory; 0 = never for that reason.
        new_privileges: programs that its handlers start may gain rights (setuid, setgid).
        command: a program and its arguments: every child is one, and runs the queue's jobs one at
            a time; it speaks docs/child_protocol.md. The queue's kinds then have no handler.
        environment: what the command gets: "NAME" of the queue process's, or "NAME=value".
    """

    name: str
    children: int = 2
    timeout: float = 30.0
    poll: float = 1.0
    awaited: bool = False
    cap: int | None = None
    recycle_jobs: int = 100_000
    recycle_seconds: float = 21_600.0
    recycle_mib: int = 512
    new_privileges: bool = False
    command: Sequence[str] = ()
    environment: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot work."""
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ConfigurationError.of(
                "queue name", "a match of [a-z][a-z0-9_]{0,40}", self.name, "rename the queue"
            )
        if type(self.children) is not int or not 1 <= self.children <= 1000:
            raise ConfigurationError.of(
                f"queue {self.name}: children", "1 to 1000", self.children, "give it at least one"
            )
        if self.cap is not None and (type(self.cap) is not int or not 1 <= self.cap < 2**31):
            raise ConfigurationError.of(
                f"queue {self.name}: cap", "1 or more", self.cap, "leave it out for none"
            )
        for name, wanted in (
            ("recycle_jobs", (int,)),
            ("recycle_seconds", (int, float)),
            ("recycle_mib", (int,)),
        ):
            given = getattr(self, name)
            if type(given) not in wanted or not 0 <= given < float("inf"):
                raise ConfigurationError.of(
                    f"queue {self.name}: {name}", "0 (never) or more", given, "correct it"
                )
        for field in ("timeout", "poll"):
            value = getattr(self, field)
            if not is_duration(value):
                raise ConfigurationError.of(
                    f"queue {self.name}: {field}",
                    "more than 0 s and at most a day",
                    value,
                    "give it in seconds",
                )
        if self.program is not None:
            object.__setattr__(self, "command", tuple(self.command))  # frozen, and to be hashed
            object.__setattr__(self, "environment", tuple(self.environment))

    @property
    def program(self) -> Command | None:
        """The command that is every child of this queue; None = it names none."""
        return Command.read(f"queue {self.name}", self.command, self.environment)


def is_duration(value: object) -> bool:
    """Whether it is a number of seconds above 0, at most a day."""
    return type(value) in (int, float) and 0 < value <= LONGEST  # type: ignore[operator]


QUEUES = (
    Queue("index", children=4, timeout=30, poll=0.1, awaited=True),
    Queue("notify", children=2, timeout=30, poll=0.1, awaited=True),
    Queue("webhook", children=8, timeout=15, poll=1),
    Queue("maintenance", children=1, timeout=600, poll=1),
    Queue("fetch", children=3, timeout=120, poll=1),
)
