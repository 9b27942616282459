"""What one queue process is there for: handed to each of its parts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.clock import SYSTEM, Clock
from shared.config.command import Command
from shared.config.queues import Queue
from shared.jobs.kinds import Kind
from shared.telemetry.instruments import Instruments


@dataclass(frozen=True, slots=True)
class Assignment:
    """A queue, and what this process knows of it.

    Attributes:
        queue: with this deployment's number of children.
        kinds: that this process knows; others are left in line.
        instruments: what is counted.
        sealed: programs of ours that run kinds which get no database, by kind.
        clock: for everything that takes time.
    """

    queue: Queue
    kinds: Mapping[str, Kind]
    instruments: Instruments
    clock: Clock = SYSTEM
    sealed: Mapping[str, Command] = field(default_factory=dict)

    @property
    def commands(self) -> dict[str, Command]:
        """Commands of kinds whose jobs have a program of their own, by kind."""
        named = {k.name: k.program for k in self.kinds.values() if k.program is not None}
        return {**named, **self.sealed}

    @property
    def all_foreign(self) -> bool:
        """Whether no job of this queue needs a child of ours."""
        kinds = self.kinds.values()
        ours = any(kind.handler and kind.database for kind in kinds)
        return bool(self.queue.command or (kinds and not ours))

    @property
    def alone(self) -> frozenset[str]:
        """Kinds whose jobs are handed over one at a time, for foreign programs run them."""
        return frozenset(self.kinds if self.queue.command else self.commands)

    @property
    def name(self) -> str:
        """The queue's name, as a label."""
        return self.queue.name


def sealed(kind: str, environment: Mapping[str, str]) -> Command:
    """The command that runs jobs of a kind which gets no database.

    Args:
        kind: its name.
        environment: all that it is given.
    """
    words = (sys.executable, "-P", "-m", "workers.sealed", kind)
    return Command(words, tuple(f"{name}={value}" for name, value in environment.items()))
