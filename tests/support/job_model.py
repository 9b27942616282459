"""What a job is and may become, in memory: the model that the database is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from shared.backoff import Backoff
from shared.jobs.retry import Fate, fate
from shared.jobs.states import CANCELLED, DISCARDED, FINAL, RUNNING, waiting_state

LATER = Backoff(base=3600.0, factor=1.0, cap=3600.0)
READY, SCHEDULED, HELD, ENDED = "ready", "scheduled", "running", "ended"


@dataclass
class ModelJob:
    """One job: where it is, and what was spent."""

    max_attempts: int
    unique: int | None = None
    key: str | None = None  # one that is parked is in line, for the model
    where: str = READY
    attempt: int = 0
    run: int = 0
    lost: int = 0  # rescues before it had begun
    ended: str = ""
    started: bool = False
    cancel_asked: bool = False
    expires: bool = False
    late: bool = False  # the moment by which it was to start has passed
    tried: bool = False  # it has run, or somebody had a hand in it: that it is late does not matter

    @property
    def state(self) -> str:
        if self.where == HELD:
            return RUNNING
        return self.ended if self.where == ENDED else waiting_state(self.attempt)

    @property
    def keeps_others_out(self) -> bool:
        return self.state not in (DISCARDED, CANCELLED)

    @property
    def expired(self) -> bool:
        """Whether it waits in vain: it is discarded when somebody comes to it."""
        return self.late and not self.tried and self.where in (READY, SCHEDULED)

    def expire(self) -> None:
        assert self.expired
        self.run += 1
        self.end(DISCARDED)

    def claim(self) -> None:
        assert self.where == READY
        assert not self.expired
        self.where, self.started, self.cancel_asked = HELD, False, False
        self.run += 1

    def goes(self, outcome: str, delay: float | None) -> Fate:
        """What a parent decides, knowing nothing of a cancel."""
        return fate(
            outcome,
            attempt=self.attempt,
            max_attempts=self.max_attempts,
            delay=delay,
            backoff=LATER,
            jitter=float,
        )

    def finish(self, decided: Fate) -> None:
        self.attempt += decided.spent
        self.tried = True
        if decided.delay is not None and self.cancel_asked:
            self.end(CANCELLED)
        elif decided.delay is None:
            self.end(decided.state)
        else:
            self.where = SCHEDULED if decided.delay > 0 else READY

    def give_back(self) -> None:
        if self.cancel_asked:
            self.end(CANCELLED)
        else:
            self.where = READY

    def rescue(self) -> None:
        """Its owner died: a try is spent if it had begun, or was lost too often before that."""
        spent = self.started or self.lost >= self.max_attempts
        self.lost += not self.started
        over = spent and self.attempt + 1 >= self.max_attempts
        self.attempt += spent
        self.tried |= self.started
        if self.cancel_asked:
            self.end(CANCELLED)
        elif over:
            self.end(DISCARDED)
        else:
            self.where = READY

    def cancel(self) -> str:
        if self.where == HELD:
            self.cancel_asked = True
        elif self.where != ENDED:
            self.run += 1
            self.end(CANCELLED)
        return self.state

    def retry(self) -> None:
        if self.state in (DISCARDED, CANCELLED):
            self.tried = True
        if self.where == SCHEDULED or self.state in (DISCARDED, CANCELLED):
            self.where = READY

    def end(self, state: str) -> None:
        assert state in FINAL
        self.where, self.ended = ENDED, state
