"""What one queue process is there for: handed to each of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shared.clock import SYSTEM, Clock
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
        clock: for everything that takes time.
    """

    queue: Queue
    kinds: Mapping[str, Kind]
    instruments: Instruments
    clock: Clock = SYSTEM

    @property
    def name(self) -> str:
        """The queue's name, as a label."""
        return self.queue.name
