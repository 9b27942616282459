"""How a queue process stops: in phases, each with its bound, told afterwards.

Before this: a stop was asked for. After it: nothing runs, everything is written, and there is a
report of what took how long. Give back what no child has begun; wait for what runs; ask it to
stop, then kill it; write all ends. What was interrupted is in line again at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shared.clock import SYSTEM
from shared.services.stop import StopSignal
from workers.one_queue import OneQueue
from workers.pool.mixed import MixedPool
from workers.pool.several import Pools

MARGIN = 1.0  # seconds past the grace until a killed child is gone
ENDING = 4.0  # seconds after that for the last ends, the loop's end and the last words, together
FLUSH = 3.0  # seconds of those that writing the last ends may take
PAUSE = 0.05  # seconds between looks at whether a second stop was asked for


@dataclass(slots=True)
class Report:
    """Seconds by phase, in order; jobs by what became of them; whether everything was written."""

    phases: dict[str, float] = field(default_factory=dict)
    by_queue: Counter[tuple[str, str]] = field(default_factory=Counter)
    complete: bool = False

    @property
    def jobs(self) -> dict[str, int]:
        """Of all queues, by what became of them."""
        found: Counter[str] = Counter()
        for (_, result), number in self.by_queue.items():
            found[result] += number
        return dict(found)


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for running jobs, and for those that were asked to stop."""

    drain: float
    grace: float


class Drain:
    """One stop of one process.

    Args:
        pools: whose loop this turns, in the main thread.
        queues: whose executors are told to begin nothing more, and whose loops write what is left.
        stop: a second request ends the wait for running jobs.
        turned: called each turn.
    """

    def __init__(
        self,
        pools: Pools,
        queues: Sequence[OneQueue],
        stop: StopSignal,
        turned: Callable[[], None],
    ) -> None:
        self._pools = pools
        self._queues = queues
        self._stop = stop
        self._turned = turned
        self._report = Report()

    def run(self, patience: Patience) -> Report:
        """Stop; takes at most drain + grace + MARGIN + FLUSH seconds."""
        before = [queue.executor.outcomes.copy() for queue in self._queues]
        for queue in self._queues:
            queue.executor.close()
        self._phase("give_back", 0, lambda: True)
        self._phase("wait", patience.drain, self._nothing_more_to_wait_for)
        self._pools.each(MixedPool.interrupt)
        self._phase("interrupt", patience.grace + MARGIN, lambda: not self._pools.busy)
        self._report.complete = self._phase(
            "flush", FLUSH, lambda: all(queue.loop.settled for queue in self._queues)
        )
        for queue, then in zip(self._queues, before, strict=True):
            ended = queue.executor.outcomes - then
            self._count(queue, "finished", ended.total() - ended["interrupted"])
            self._count(queue, "interrupted", ended["interrupted"])
        return self._report

    def _nothing_more_to_wait_for(self) -> bool:
        return not self._pools.busy or self._stop.requests > 1 or self._stop.failure is not None

    def _phase(self, name: str, bound: float, over: Callable[[], bool]) -> bool:
        """Turn the pools' loop until `over`, at most `bound` seconds; return whether it was."""
        begun = SYSTEM.monotonic()
        while True:
            for queue in self._queues:
                given = queue.executor.take_back()
                if given:
                    self._count(queue, "given_back", len(given))
                    queue.loop.hand_back(given)
            passed = SYSTEM.monotonic() - begun
            if over() or passed >= bound:
                self._report.phases[name] = round(passed, 3)
                return over()
            self._pools.turn(min(PAUSE, bound - passed))
            self._turned()

    def _count(self, queue: OneQueue, result: str, number: int) -> None:
        self._report.by_queue[queue.assignment.name, result] += number
