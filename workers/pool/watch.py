"""Watching what children use while they run: samples, and the limits of kinds.

Before this: the pool's loop turns. After it: the pool ends the jobs that are named here; what was
seen goes into the evidence. Short jobs are never looked at. Must never end anything itself.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from math import inf
from typing import Protocol

from workers.pool.chunk import Job
from workers.pool.slot import Slot, State
from workers.pool.usage import MemoryEvents

SAMPLE = 0.25  # seconds between two looks at a child that runs the same job
EVENTS = 1.0  # seconds between two looks at what the kernel killed, while a job runs
IDLE_EVENTS = 5.0  # and otherwise
MEMORY, CPU = "memory_limit", "cpu_limit"  # reasons


class Allowed(Protocol):
    """What jobs of one kind may use; None = anything."""

    @property
    def memory_mib(self) -> int | None:
        """Memory (MiB) by which the child may grow."""
        ...

    @property
    def open_files(self) -> int | None:
        """Highest file descriptor."""
        ...

    @property
    def cpu_seconds(self) -> float | None:
        """CPU time of one run."""
        ...


class Used(Protocol):
    """What a child has used for the job that it runs."""

    @property
    def grown(self) -> float:
        """Memory (MiB) by which it has grown."""
        ...

    @property
    def cpu_spent(self) -> float:
        """CPU time."""
        ...


class Watch:
    """Samples children.

    Attributes:
        most: the most memory (MiB) that one was seen to hold.

    Args:
        allowed: what a kind's jobs may use, for kinds that have limits.
        events: of the kernel.
    """

    def __init__(self, allowed: Mapping[str, Allowed], events: MemoryEvents | None = None) -> None:
        self._allowed = allowed
        self._events = events or MemoryEvents.of_this_process()
        self._events_seen = -inf
        self._due = inf
        self.most = 0.0

    @property
    def due(self) -> float:
        """When the next look is due."""
        return self._due

    def look(self, slots: Iterable[Slot], now: float) -> list[tuple[Slot, str]]:
        """Sample children that have been at the same job for a while.

        Returns:
            Those whose job uses more than it may, and of what.
        """
        found: list[tuple[Slot, str]] = []
        self._due = inf
        for slot in slots:
            if slot.state not in (State.BUSY, State.ASKED):
                continue
            job, began = slot.runs()
            due = max(began, slot.sampled_at) + SAMPLE
            if job is not None and due <= now:
                slot.sample(now)
                self.most = max(self.most, slot.memory)
                due = now + SAMPLE
                reason = self._beyond(slot, job)
                if reason:
                    found.append((slot, reason))
            self._due = min(self._due, due)
        if now - self._events_seen >= (IDLE_EVENTS if self._due == inf else EVENTS):
            self._events_seen = now
            self._events.look()
        return found

    def out_of_memory(self, slot: Slot, code: int) -> bool:
        """Whether a child that is dead was killed by the kernel, for want of memory.

        Args:
            slot: the child.
            code: its exit code.
        """
        if code != -signal.SIGKILL or slot.reason:
            return False
        return self._events.killed() or self._events.scarce(slot.memory)

    def _beyond(self, slot: Slot, job: Job) -> str:
        reason = beyond(self._allowed.get(job.kind), slot)
        return "" if reason == CPU and slot.state is not State.BUSY else reason


def beyond(allowed: Allowed | None, used: Used) -> str:
    """What a run uses more of than it may; "" = nothing."""
    if allowed is None:
        return ""
    if allowed.memory_mib is not None and used.grown > allowed.memory_mib:
        return MEMORY
    if allowed.cpu_seconds is not None and used.cpu_spent > allowed.cpu_seconds:
        return CPU
    return ""
