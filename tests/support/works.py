"""Stand-ins for a queue process's surroundings: a clock to turn, a database to script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from shared.config.queues import Queue
from shared.jobs.kinds import Kind
from shared.jobs.work import Around, Claim, Completed, Cut, DeadOwner, Finish, Held, Mark
from shared.telemetry.instruments import open_instruments
from workers.assignment import Assignment
from workers.verdicts import plain


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now)


def claim(job_id: int, **more: object) -> Claim:
    """A claim of kind t.ok."""
    fields: dict[str, object] = {
        "job_id": job_id, "run": 1, "attempt": 0, "max_attempts": 3, "kind": "t.ok", "timeout": 5.0,
        "awaited": False, "token": job_id * 7, "ready_age": 0.0, "line": b"{}",
    }  # fmt: skip
    return Claim(**{**fields, **more})  # type: ignore[arg-type]


def assignment(home: Path, clock: Clock, children: int = 2) -> Assignment:
    """A queue "t" with one kind."""
    return Assignment(
        Queue("t", children=children, poll=0.1),
        {"t.ok": Kind("t.ok", "t", "m:f")},
        open_instruments(home, "t"),
        clock,
    )


class ScriptedWork:
    """A Work that answers from lists, and remembers what it was asked."""

    def __init__(self) -> None:
        self.connected = True
        self.cut = Cut()
        self.said: list[str] = []
        self.claims: list[list[Claim]] = []
        self.asleep: list[bool] = []
        self.astray: list[tuple[int, bool]] = []
        self.finished: list[list[Finish]] = []
        self.errors: list[Exception] = []
        self.rows: list[Held] = []
        self.in_line: set[int] = set()  # jobs that wait as before they were claimed
        self.given: list[int] = []
        self.giving: list[Exception] = []  # what giving back fails with
        self.around = Around()
        self.promoting: list[Exception] = []  # what promoting fails with
        self.dead: list[DeadOwner] = []
        self.asked: list[int] = []
        self.waiting: float | None = None
        self.locked = False  # by somebody else: the job that waits
        self.due: tuple[int, float | None] = (0, None)
        self.next_tick: float | None = None

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        self.said.append(f"claim {limit}")
        return self.claims.pop(0) if self.claims else []

    def tidy(self) -> None:
        """Nothing to do."""

    def give_back(self, claims: Sequence[Claim | Held]) -> int:
        if self.giving:
            raise self.giving.pop(0)
        self.given.extend(claim.job_id for claim in claims)
        return len(claims)

    def mark_started(self, claims: Sequence[Claim]) -> None:
        self.said.extend(f"mark {claim.job_id}" for claim in claims)

    def mark_progress(self, marks: Sequence[Mark]) -> None:
        self.said.extend(f"{mark.job_id}: {mark.progress}" for mark in marks)

    def quarantine(self, kind: str, why: str) -> bool:
        self.said.append(f"quarantine {kind}: {why}")
        return True

    def held(self) -> list[Held]:
        self.said.append("held")
        return self.rows

    def retake(self, claims: Sequence[Claim]) -> set[int]:
        self.said.append(f"retake {' '.join(str(claim.job_id) for claim in claims)}")
        return {claim.job_id for claim in claims} & self.in_line

    def finish(self, finishes: Sequence[Finish]) -> int:
        if self.errors:
            raise self.errors.pop(0)
        self.finished.append(list(finishes))
        return len(finishes)

    def complete(self, runs: Sequence[Completed]) -> int:
        return self.finish([plain(claim, run.started_at) for run in runs for claim in run.claims])

    def promote(self, *, look: bool = False) -> tuple[int, float | None, Around | None]:
        self.said.append("promote")
        if self.promoting:
            raise self.promoting.pop(0)
        return *self.due, self.around if look else None

    def bring(self, kinds: Sequence[str]) -> tuple[int, bool]:
        self.said.append(f"bring {' '.join(kinds)}")
        return self.astray.pop(0) if self.astray else (0, False)

    def tick(self, kinds: Sequence[str]) -> float | None:
        self.said.append(f"tick {' '.join(kinds)}")
        return self.next_tick

    def learn(self) -> None:
        self.said.append("learn")

    def unpark(self) -> int:
        self.said.append("unpark")
        return 0

    def dead_owners(self) -> list[DeadOwner]:
        self.said.append("dead owners")
        return self.dead

    def rescue(self, dead: Sequence[DeadOwner]) -> Mapping[str, int]:
        self.said.append("rescue")
        return {owner.reason: 1 for owner in dead}

    def oldest(self, kinds: Sequence[str]) -> float | None:
        return self.waiting if kinds else None

    def oldest_free(self, kinds: Sequence[str]) -> float | None:
        return None if self.locked else self.oldest(kinds)

    def fileno(self) -> int:
        return -1

    def to_cancel(self) -> list[int]:
        return self.asked

    def drain(self) -> list[str]:
        return []

    def fall_asleep(self) -> bool:
        self.said.append("fall asleep")
        return self.asleep.pop(0) if self.asleep else True

    def wake_up(self) -> None:
        self.said.append("wake up")

    def close(self) -> None:
        self.connected = False
