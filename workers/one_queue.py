"""One queue in a process: its pool, its loop with the database, and what stands between them.

Before this: the queue process, which has one of these for each of its queues. After it: producer,
executor, completer and upkeep, each for this queue alone, so that none starves another. Must never
share a session, a buffer or a limit with another queue.
"""

from __future__ import annotations

from collections.abc import Callable

from shared.jobs.work import Work
from shared.services.service import ServiceThread
from workers.assignment import Assignment
from workers.completer import Completer
from workers.database_loop import DatabaseLoop, Parts, Wake
from workers.executor import Executor
from workers.pool.forkserver import ForkServer
from workers.pool.limits import Limits
from workers.pool.meters import PoolMeters
from workers.pool.mixed import Foreign, MixedPool
from workers.pool.tree import kill_bearers
from workers.pool.wear import Recycle
from workers.producer import Producer
from workers.upkeep import Upkeep


class OneQueue:
    """What runs one queue.

    Attributes:
        assignment, executor, producer, loop, pool: its parts.
        thread: of the loop; not started here.

    Args:
        assignment: the queue and its kinds.
        server: where children come from.
        open_work: opens the sessions of this queue.
        turned: called each turn of its loop with the database.
        failed: called when that loop dies.
        grace: seconds that a job asked to stop may take.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (what only the process knows)
        self,
        assignment: Assignment,
        server: ForkServer,
        open_work: Callable[[], Work],
        turned: Callable[[], None],
        failed: Callable[[BaseException], None],
        grace: float,
    ) -> None:
        self.assignment = assignment
        wake = Wake()
        completer = Completer(assignment, wake)
        self.executor = Executor(assignment, completer, wake)
        self.producer = Producer(assignment)
        upkeep = Upkeep(assignment, self.executor, self.producer, kill_bearers)
        parts = Parts(self.executor, self.producer, completer, upkeep)
        self.loop = DatabaseLoop(assignment, open_work, parts, wake, turned)
        self.thread = ServiceThread("database", self.loop.run, failed, wake)
        self.pool = MixedPool(
            server,
            _limits(assignment, grace),
            self.executor,
            PoolMeters(assignment.instruments, assignment.name),
            Foreign(
                assignment.commands,
                assignment.queue.program,
                assignment.all_foreign,
                assignment.queue.new_privileges,
            ),
        )
        self.executor.attach(self.pool)

    @property
    def filled(self) -> bool:
        """Whether all its children are there."""
        return self.pool.ready >= self.assignment.queue.children

    def rest(self, *, resting: bool) -> None:
        """Claim nothing more, or claim again; in the loop's thread."""
        self.producer.rest(resting=resting)
        if resting:
            self.loop.hand_back(self.executor.take_back())


def _limits(assignment: Assignment, grace: float) -> Limits:
    queue = assignment.queue
    return Limits(
        queue.children,
        grace,
        Recycle(queue.recycle_jobs, queue.recycle_seconds, queue.recycle_mib),
        {kind.name: kind.limits for kind in assignment.kinds.values() if kind.limits is not None},
    )
