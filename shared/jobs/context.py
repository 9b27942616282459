"""What a handler is told about its job, and what it may use while it runs.

Made anew for each job by the child's runner; worthless after the handler returned.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import isfinite
from typing import Any, NoReturn

from shared.errors import InvalidArguments, NoDatabase

Report = Callable[[float, float | None], None]  # takes how far a job is: n, of


def refuse_database() -> NoReturn:
    """Tell a handler of a kind without a database that it asked for one."""
    raise NoDatabase(
        "ctx.connection(): expected a handler that needs no database, for its kind is declared "
        "with database=False; got a call; declare the kind without that"
    )


@dataclass(slots=True)
class Context:
    """First argument of every handler.

    Attributes:
        job_id: decimal string of a 64-bit number.
        run: how often the job has been claimed, this time included.
        attempt: number of this try, from 1; snoozes and interruptions do not count.
        max_attempts: tries before the job is discarded.
        kind: of the job.
        deadline: moment on the monotonic clock at which the job will be asked to stop.
        owner_id: whose job it is.
        trace: W3C traceparent of what enqueued it.
    """

    job_id: str
    run: int
    attempt: int
    max_attempts: int
    kind: str
    deadline: float
    owner_id: str | None
    trace: str | None
    _asked: Callable[[], bool]
    _connection: Callable[[bool], AbstractContextManager[Any]]
    _report: Report
    _log: logging.LoggerAdapter[logging.Logger] | None = None
    _ending: str | None = None
    _outside: float | None = None

    @property
    def log(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger whose lines name the job; made when first asked for: many jobs are shorter."""
        if self._log is None:
            fields = {"job": self.job_id, "kind": self.kind, "attempt": self.attempt}
            self._log = logging.LoggerAdapter(logging.getLogger(f"job.{self.kind}"), fields)
        return self._log

    @property
    def outcome(self) -> str | None:
        """How the run ended, for hooks: completed, failed, snoozed, discarded or stopped.

        None as long as the handler runs. Stopped: its time was up, or the process ends.
        """
        return self._ending

    def _settle(self, outcome: str) -> None:
        """Note how the run ended, before the hooks hear of it."""
        self._ending = outcome

    def _called(self, seconds: float) -> None:
        """Note how long a request to a stranger took: the engine's own handlers, for a metric."""
        self._outside = seconds

    def cancelled(self) -> bool:
        """Whether the job was asked to stop: its time is up, or the process ends.

        The handler's main thread is interrupted by an exception anyway; loops in other threads
        look here.
        """
        return self._asked()

    def progress(self, n: float, of: float | None = None) -> None:
        """Tell how far the job is: `n` of `of`, in whatever unit; shown to whoever looks.

        As cheap as a few assignments, so call it as often as you like: what was told last is kept
        about once a second.

        Raises:
            InvalidArguments: no finite numbers of 0 or more.
        """
        if not (_counts(n) and (of is None or _counts(of))):
            raise InvalidArguments(
                f"progress: expected numbers of 0 or more; got {n!r}, {of!r}; count anew"
            )
        self._report(float(n), None if of is None else float(of))

    def connection(self, *, pristine: bool = False) -> AbstractContextManager[Any]:
        """A psycopg connection in autocommit mode, for the length of a `with` block.

        Opened when first asked for, kept for the child's next jobs. For several writes that belong
        together use `with ctx.connection() as conn, conn.transaction():`.

        Args:
            pristine: you promise that the block leaves the session as it found it (no SET, LISTEN,
                temporary table or lock of the session). Else the session is renewed after the job,
                so that nothing of it reaches the next one: 0.3 ms, felt by jobs of a few of them.
        """
        return self._connection(pristine)

    @classmethod
    def of(
        cls,
        job: Mapping[str, Any],
        deadline: float,
        asked: Callable[[], bool],
        connection: Callable[[bool], AbstractContextManager[Any]],
        report: Report,
    ) -> Context:
        """The context of a job as the database told it (its `attempt` counts earlier tries)."""
        return cls(
            job_id=job["id"],
            run=job["run"],
            attempt=job["attempt"] + 1,
            max_attempts=job["max_attempts"],
            kind=job["kind"],
            deadline=deadline,
            owner_id=job["owner_id"],
            trace=job["trace"],
            _asked=asked,
            _connection=connection,
            _report=report,
        )


def _counts(number: object) -> bool:
    return (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and isfinite(number)
        and number >= 0
    )
