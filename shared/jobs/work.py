"""PORT between a queue process and its database: claims come in, finishes go out.

The producer, the completer and the upkeep see only this; shared.postgres.queues.work keeps the
promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from shared.jobs.inspect import Progress

CANCEL = "cancel"  # what a notice says when the end of a running job is asked for


class Claim(NamedTuple):
    """One claimed job. A tuple: one is made for each of 50,000 jobs a second.

    Attributes:
        attempt: tries spent before this one.
        timeout: seconds this attempt may run.
        token: fences every later write for this claim.
        ready_age: seconds that it had been waiting to be claimed.
        line: the job as one JSON object, handed to a child unparsed.
    """

    job_id: int
    run: int
    attempt: int
    max_attempts: int
    kind: str
    timeout: float
    awaited: bool
    token: int
    ready_age: float
    line: bytes


class Completed(NamedTuple):
    """Claims that ran in one child, one after the other, and completed with nothing to tell.

    Attributes:
        started_at: when the first began, seconds since 1970; told of all of them.
    """

    claims: Sequence[Claim]
    started_at: float


class Cut(NamedTuple):
    """Which limits kept a claim from more.

    Attributes:
        capped: the queue's cap did: there may be more after the next end.
        opens: seconds until one of `kinds` may start the next: they have started all that they may.
        unfinished: it found only jobs that were parked or had expired; more may stand behind them.
    """

    capped: bool = False
    opens: float | None = None
    kinds: tuple[str, ...] = ()
    unfinished: bool = False


class Held(NamedTuple):
    """A row of `running` that bears this process's epoch; `age` in seconds since the claim."""

    job_id: int
    token: int
    age: float


class Around(NamedTuple):
    """What stands in the database for timers to look after, by a cheap look.

    Attributes:
        ours: rows of `running` of this queue bear this process's epoch.
        others: rows of `running` bear another's, which may be dead.
        parked: a job waits for a concurrency key.
        ticks: a periodic job, of whatever kind, is new or has its next tick within 10 s.
    """

    ours: bool = True
    others: bool = True
    parked: bool = True
    ticks: bool = True


class Mark(NamedTuple):
    """How far the job of a claim is, as its handler told."""

    job_id: int
    token: int
    progress: Progress


class DeadOwner(NamedTuple):
    """A process that is dead and held jobs; `mark` finds what it left on this host, if it did."""

    epoch: int
    reason: str
    mark: str | None


@dataclass(frozen=True, slots=True)
class Finish:
    """How one run ended.

    Attributes:
        job_id, token: of the claim.
        outcome: completed, failed, timeout, crashed, snoozed, discarded, cancelled, interrupted.
        state: where the job goes: completed, discarded, cancelled, pending, retryable.
        delay: None = final; 0 = ready at once; else seconds until it may run again.
        spent: an attempt was spent.
        error: message for people; already clean (no NUL) and bounded.
        cause: one word of a closed list for programs.
        evidence: what is known of how it ended (signal, exit code, stack …).
        result: JSON text of at most 32 KiB.
        started_at: when the child began, seconds since 1970; None = it never did.
        horizon: seconds for which this may be so, run after run, when what the kind depends on is
            away; None = no such case.
        beyond: what is written instead when it has been so for longer.
    """

    job_id: int
    token: int
    outcome: str = "completed"
    state: str = "completed"
    delay: float | None = None
    spent: bool = True
    error: str | None = None
    cause: str | None = None
    evidence: Mapping[str, Any] | None = None
    result: str | None = None
    started_at: float | None = None
    horizon: float | None = None
    beyond: Finish | None = None

    @property
    def plain(self) -> bool:
        """A success with nothing to say but its result: the hot path."""
        return self.outcome == "completed" and self.error is None and self.evidence is None


class Work(Protocol):
    """One process's dealings with one queue. Used from one thread.

    Every method may raise DatabaseUnavailable; when `connected` is False then, open another.
    """

    @property
    def connected(self) -> bool:
        """Whether its sessions still stand."""
        ...

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` jobs; empty only when a look at everything found nothing."""
        ...

    def tidy(self) -> None:
        """After a claim: what can wait until its jobs were handed over."""
        ...

    @property
    def cut(self) -> Cut:
        """Which limits kept the last claim from more."""
        ...

    def learn(self) -> None:
        """Read the limits anew that claims have to keep."""
        ...

    def give_back(self, claims: Sequence[Claim | Held]) -> int:
        """Return jobs that were not started; how many were still ours."""
        ...

    def mark_started(self, claims: Sequence[Claim]) -> None:
        """Mark jobs that have been running for a moment."""
        ...

    def mark_progress(self, marks: Sequence[Mark]) -> None:
        """Keep how far jobs are."""
        ...

    def quarantine(self, kind: str, why: str) -> bool:
        """Have every claim skip a kind until somebody resumes it; whether it was not paused yet."""
        ...

    def held(self) -> list[Held]:
        """What the database thinks this process holds."""
        ...

    def retake(self, claims: Sequence[Claim]) -> set[int]:
        """Hold jobs again whose claims the database has lost, if they still wait; their ids."""
        ...

    def finish(self, finishes: Sequence[Finish]) -> int:
        """Write ends in one transaction; how many still held the fence."""
        ...

    def complete(self, runs: Sequence[Completed]) -> int:
        """Write plain successes in one transaction; how many still held the fence."""
        ...

    def promote(self, *, look: bool = False) -> tuple[int, float | None, Around | None]:
        """Put jobs in line whose time has come; with `look`, look around in the same statement.

        Returns:
            (how many, seconds until the next or None, what there is to look after or None).
        """
        ...

    def bring(self, kinds: Sequence[str]) -> tuple[int, bool]:
        """Bring jobs of these kinds here that wait in another queue; see to queues left alone.

        Returns:
            (how many came, whether there may be more).
        """
        ...

    def tick(self, kinds: Sequence[str]) -> float | None:
        """Start what is due of these kinds' periodic jobs; seconds until the next tick, or None."""
        ...

    def unpark(self) -> int:
        """Let jobs go on that wait for a concurrency key in vain: the net; how many."""
        ...

    def dead_owners(self) -> list[DeadOwner]:
        """Dead processes that hold jobs, of any queue."""
        ...

    def rescue(self, dead: Sequence[DeadOwner]) -> Mapping[str, int]:
        """Take their jobs back; how many, by reason."""
        ...

    def oldest(self, kinds: Sequence[str]) -> float | None:
        """Seconds that the oldest job of these kinds has been claimable; None = there is none."""
        ...

    def oldest_free(self, kinds: Sequence[str]) -> float | None:
        """As `oldest`, of jobs whose rows nobody has locked; costs more."""
        ...

    def fileno(self) -> int:
        """Readable when a notice has arrived."""
        ...

    def to_cancel(self) -> list[int]:
        """Ids of jobs that this process holds and whose end was asked for."""
        ...

    def drain(self) -> list[str]:
        """Take the notices that arrived; return what each said: "" (there is more) or CANCEL."""
        ...

    def fall_asleep(self) -> bool:
        """Try to sleep; True = every writer from now on notifies. Then look once more."""
        ...

    def wake_up(self) -> None:
        """Let writers be silent again: there is more to do."""
        ...

    def close(self) -> None:
        """End the sessions."""
        ...
