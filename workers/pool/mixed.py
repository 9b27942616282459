"""A pool whose children may also be foreign programs: what a queue process works with.

Before this: the executor gives it jobs. After it: those of kinds with a command go to `programs`,
all others to children of ours. Both together never run more jobs than the queue has children. Must
never let a job wait in a child of ours behind one that a program runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from shared.clock import SYSTEM, Clock
from shared.config.command import Command
from workers.pool.accounts import Client
from workers.pool.chunk import Job
from workers.pool.forkserver import ForkServer
from workers.pool.limits import Limits
from workers.pool.meters import PoolMeters
from workers.pool.pool import Pool
from workers.pool.programs import Around, Programs


@dataclass(frozen=True, slots=True)
class Foreign:
    """Which jobs are run by foreign programs.

    Attributes:
        commands: of kinds, by kind: each job has a program of its own.
        command: of the queue: all its children are such programs.
        all: no job needs a child of ours.
        new_privileges: they may gain rights (setuid, setgid).
    """

    commands: Mapping[str, Command] = field(default_factory=dict)
    command: Command | None = None
    all: bool = False
    new_privileges: bool = False


class MixedPool(Pool):
    """Children of ours and foreign programs.

    Args:
        server: where both come from.
        limits: how many of both together, how patient.
        client: told what becomes of each job.
        meters: what is counted.
        foreign: what programs run.
        clock: for deadlines.
    """

    def __init__(  # noqa: PLR0913, PLR0917  (a pool's, and what programs run)
        self,
        server: ForkServer,
        limits: Limits,
        client: Client,
        meters: PoolMeters,
        foreign: Foreign,
        clock: Clock = SYSTEM,
    ) -> None:
        self._places = limits.size
        self._foreign = foreign
        ours = replace(limits, size=0 if foreign.all else limits.size)
        super().__init__(server, ours, client, meters, clock)
        around = Around(server, client, meters, clock, limits, foreign.new_privileges)
        lasting = (foreign.command, limits.size) if foreign.command else None
        self._programs = Programs(around, foreign.commands, lasting)
        self.watch(self._programs.fileno(), self._programs.hear)

    @property
    def free(self) -> int:
        """Jobs that could be begun now. Readable from any thread."""
        if self._foreign.command:
            return self._programs.free
        places = self._places if self._foreign.all else super().free
        return max(0, places - len(self._programs))

    @property
    def busy(self) -> int:
        """Children that hold jobs."""
        return super().busy + self._programs.busy

    @property
    def ready(self) -> int:
        """Children that can take a job or have one; what is started for a job is always ready."""
        if self._foreign.command:
            return self._programs.ready
        return self._places if self._foreign.all else super().ready

    def give(self, jobs: Sequence[Job]) -> None:
        """Hand jobs to a child; see Pool.give. One that a program runs comes alone."""
        if self.free < 1:
            raise IndexError("no child is free")
        if self._foreign.all or jobs[0].kind in self._foreign.commands:
            self._programs.run(jobs[0])
            self._accounts.returned(jobs[1:])
        else:
            super().give(jobs)

    def turn(self, longest: float) -> None:
        """One turn of the loop; see Pool.turn."""
        self._programs.turn()
        super().turn(self.patience(longest))

    def patience(self, longest: float) -> float:
        """Seconds, at most `longest`, until a turn has something to do, if nothing is heard."""
        due = max(0.0, self._programs.due() - self._clock.monotonic())
        return self._patience(min(longest, due))

    def fileno(self) -> int:
        """Readable when a turn has something to hear."""
        return self._selector.fileno()

    def stop(self, job_id: int, reason: str) -> None:
        """Ask a job to stop; see Pool.stop."""
        self._programs.stop(job_id, reason)
        super().stop(job_id, reason)

    def interrupt(self) -> None:
        """Start no more children and stop those that there are; see Pool.interrupt."""
        self._programs.interrupt()
        super().interrupt()

    def close(self) -> None:
        """Kill what is left; see Pool.close."""
        self._programs.kill()
        super().close()
        self._programs.close()
