"""A pool in the test's own process, with a loop that the test turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shared.services.process import adopt_orphans
from shared.telemetry.instruments import open_instruments
from tests.support import pool_child
from workers.pool.chunk import End, Job, Run
from workers.pool.forkserver import ForkServer, Target
from workers.pool.limits import Limits
from workers.pool.meters import PoolMeters
from workers.pool.pool import Pool
from workers.pool.slot import Slot


class BenchJob(NamedTuple):
    """A job."""

    job_id: int
    kind: str  # what it does
    line: bytes
    timeout: float


class PoolBench:
    """A pool and the ends that it gave."""

    def __init__(self, home: Path, limits: Limits, target: Target) -> None:
        self.instruments = open_instruments(home, "test")
        self.ends: list[End] = []
        self.server = ForkServer(target, ["tests.support.pool_child"], home)
        meters = PoolMeters(self.instruments, "test")
        self.progress: dict[int, tuple[float, float | None]] = {}
        self.back: list[int] = []  # ids of jobs that were returned
        self.pool = Pool(self.server, limits, self, meters)
        self._key = 0

    def ended(self, end: End) -> None:
        """As the pool's client."""
        self.ends.append(end)

    def completed(self, run: Run) -> None:
        """As the pool's client."""
        each = run.seconds / len(run.jobs)
        self.ends += [End(job.job_id, "completed", run.started_at, each) for job in run.jobs]

    def returned(self, jobs: Sequence[Job]) -> None:
        """As the pool's client."""
        self.back += [job.job_id for job in jobs]

    def progressed(self, job_id: int, n: float, of: float | None) -> None:
        """As the pool's client."""
        self.progress[job_id] = (n, of)

    def turn_until(self, predicate: Callable[[], Any], timeout: float, what: str) -> Any:
        """Turn the loop until the predicate gives something true."""
        deadline = time.monotonic() + timeout
        while not (seen := predicate()):
            assert time.monotonic() < deadline, f"waited {timeout:g} s for: {what}; {self.ends}"
            self.pool.turn(0.02)
        return seen

    def ready(self) -> None:
        """Turn until every child can take a job."""
        self.turn_until(lambda: self.pool.free == self.pool._size, 10, "all children are free")

    def give(self, do: str, timeout: float = 30, **args: Any) -> int:
        """Hand over a job; return its key."""
        [key] = self.give_all([(do, args)], timeout)
        return key

    def give_all(self, jobs: Sequence[tuple[str, dict[str, Any]]], timeout: float = 30) -> range:
        """Hand jobs to one child, (what to do, args) each; return their keys."""
        given = [self.job(do, args, timeout) for do, args in jobs]
        self.pool.give(given)
        return range(given[0].job_id, self._key + 1)

    def job(self, do: str, args: dict[str, Any], timeout: float = 30) -> BenchJob:
        """A job that is not handed over yet."""
        self._key += 1
        line = json.dumps({"id": str(self._key), "args": {"do": do, **args}})
        return BenchJob(self._key, do, line.encode(), timeout)

    def child_of(self, key: int) -> Slot:
        """The child that holds a job."""
        return next(s for s in self.pool._slots if s.chunk is not None and s.chunk.holds(key))

    def begun(self, key: int, seconds: float = 0.1) -> Slot:
        """Turn until a job has run for a moment; return its child."""

        def runs() -> Slot | None:
            slot = self.child_of(key)
            job, since = slot.runs()
            long = time.monotonic() - since > seconds
            return slot if job is not None and job.job_id == key and long else None

        return self.turn_until(runs, 5, f"{key} has begun")

    def end(self, key: int, timeout: float = 10) -> End:
        """Turn until a job has ended."""
        return self.turn_until(
            lambda: next((e for e in self.ends if e.key == key), None), timeout, f"end of {key}"
        )

    def run(self, do: str, timeout: float = 30, **args: Any) -> End:
        """Hand over a job and wait for its end."""
        self.turn_until(lambda: self.pool.free, 10, "a child is free")
        return self.end(self.give(do, timeout, **args))

    def pids(self) -> list[int]:
        """Process ids of the children."""
        return sorted(slot.pid for slot in self.pool._slots)

    def values(self, keys: Sequence[int]) -> list[Any]:
        """Results of jobs that completed."""
        return [json.loads(self.end(key).result or "null") for key in keys]


@contextmanager
def pool_bench(
    home: Path,
    size: int = 2,
    grace: float = 0.5,
    target: Target = pool_child.main,
    **limits: Any,
) -> Iterator[PoolBench]:
    """Make a pool; close it at the end."""
    adopt_orphans()
    bench = PoolBench(home, Limits(size, grace, **limits), target)
    try:
        yield bench
    finally:
        bench.pool.close()
        bench.instruments.close()
