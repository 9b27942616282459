"""How a queue process stops: in phases, each with its bound, told afterwards.

Before this: a stop was asked for. After it: nothing runs, everything is written, and there is a
report of what took how long. Give back what no child has begun; wait for what runs; ask it to
stop, then kill it; write all ends. What was interrupted is in line again at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from shared.clock import SYSTEM
from shared.services.stop import StopSignal
from workers.database_loop import DatabaseLoop
from workers.executor import Executor
from workers.pool.pool import Pool

MARGIN = 1.0  # seconds past the grace until a killed child is gone
ENDING = 4.0  # seconds after that for the last ends, the loop's end and the last words, together
FLUSH = 3.0  # seconds of those that writing the last ends may take
PAUSE = 0.05  # seconds between looks at whether a second stop was asked for


@dataclass(slots=True)
class Report:
    """Seconds by phase, in order; jobs by what became of them; whether everything was written."""

    phases: dict[str, float] = field(default_factory=dict)
    jobs: dict[str, int] = field(default_factory=dict)
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for running jobs, and for those that were asked to stop."""

    drain: float
    grace: float


class Drain:
    """One stop of one process.

    Args:
        pool: whose loop this turns, in the main thread.
        executor: told to begin nothing more.
        loop: writes what is left.
        stop: a second request ends the wait for running jobs.
        turned: called each turn.
    """

    def __init__(
        self,
        pool: Pool,
        executor: Executor,
        loop: DatabaseLoop,
        stop: StopSignal,
        turned: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._executor = executor
        self._loop = loop
        self._stop = stop
        self._turned = turned
        self._report = Report()

    def run(self, patience: Patience) -> Report:
        """Stop; takes at most drain + grace + MARGIN + FLUSH seconds."""
        before = self._executor.outcomes.copy()
        self._executor.close()
        self._phase("give_back", 0, lambda: True)
        self._phase("wait", patience.drain, self._nothing_more_to_wait_for)
        self._pool.interrupt()
        self._phase("interrupt", patience.grace + MARGIN, lambda: not self._pool.busy)
        self._report.complete = self._phase("flush", FLUSH, lambda: self._loop.settled)
        ended = self._executor.outcomes - before
        self._report.jobs.update(
            finished=ended.total() - ended["interrupted"], interrupted=ended["interrupted"]
        )
        return self._report

    def _nothing_more_to_wait_for(self) -> bool:
        return not self._pool.busy or self._stop.requests > 1 or self._stop.failure is not None

    def _phase(self, name: str, bound: float, over: Callable[[], bool]) -> bool:
        """Turn the pool's loop until `over`, at most `bound` seconds; return whether it was."""
        begun = SYSTEM.monotonic()
        while True:
            given = self._executor.take_back()
            if given:
                self._report.jobs["given_back"] = self._report.jobs.get("given_back", 0) + len(
                    given
                )
                self._loop.hand_back(given)
            passed = SYSTEM.monotonic() - begun
            if over() or passed >= bound:
                self._report.phases[name] = round(passed, 3)
                return over()
            self._pool.turn(min(PAUSE, bound - passed))
            self._turned()
