"""A job as the memory adapter keeps it, and how it looks from outside."""

from __future__ import annotations

import json
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from shared.events.event import Event
from shared.jobs.inspect import Attempt, Job, Progress, Wait
from shared.jobs.kinds import Kind
from shared.jobs.options import EnqueueOpts
from shared.jobs.states import FINAL, RUNNING, waiting_state

READY = "ready"
SCHEDULED = "scheduled"
HELD = "running"
ENDED = "ended"
UNCOMMITTED = "uncommitted"


@dataclass(slots=True, eq=False)
class Row:
    """One job. Where it is, is its state, as in the database.

    Attributes:
        text: the args as JSON; parsed anew for each run, so that no handler changes them.
        where: uncommitted, ready, scheduled, running or ended.
        due: when it may run; None = at once.
        why: it is scheduled: delay, retry or snooze.
        seq: its place in the line, drawn anew at each entry.
        attempt: tries spent.
        run: how often it was started.
        hold: what keeps others like it out.
        progress: how far it is, while it runs.
    """

    id: int
    kind: Kind
    text: str
    opts: EnqueueOpts
    max_attempts: int
    timeout: float
    created_at: datetime
    event: Event | None = None
    hold: Hashable | None = None
    where: str = UNCOMMITTED
    due: datetime | None = None
    why: str = "delay"
    seq: int = 0
    ready_at: datetime | None = None
    attempt: int = 0
    run: int = 0
    claimed_at: datetime | None = None
    cancel_requested_at: datetime | None = None
    result: str | None = None
    progress: Progress | None = None
    log: list[Attempt] = field(default_factory=list)

    @property
    def priority(self) -> int:
        """1 (first) to 4."""
        return 2 if self.opts.priority is None else self.opts.priority

    @property
    def args(self) -> dict[str, Any]:
        """The args, anew."""
        parsed: dict[str, Any] = json.loads(self.text)
        return parsed

    @property
    def state(self) -> str:
        """One of shared.jobs.states."""
        if self.where == HELD:
            return RUNNING
        return self.log[-1].state if self.where == ENDED else waiting_state(self.attempt)

    def answer(self) -> Wait:
        """What a waiter is told."""
        state = self.state
        result = None if self.result is None else json.loads(self.result)
        return Wait(state, state in FINAL, result, self.progress)

    def job(self, *, whole: bool = False) -> Job:
        """The job for people and programs; `whole` with args, result and attempts."""
        return Job(
            id=str(self.id),
            kind=self.kind.name,
            queue=self.kind.queue,
            state=self.state,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            priority=self.priority,
            created_at=iso(self.created_at),
            scheduled_at=iso(self.due) if self.where == SCHEDULED and self.due else None,
            owner_id=self.opts.owner_id,
            tags=self.opts.tags,
            progress=self.progress,
            args=self.args if whole else None,
            result=self.answer().result if whole else None,
            command=tuple(self.kind.command) if whole else (),
            attempts=tuple(self.log) if whole else (),
        )


def iso(moment: datetime) -> str:
    """A moment as the ports tell it."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
