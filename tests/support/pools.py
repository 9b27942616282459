"""A pool in the test's own process, with a loop that the test turns."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shared.services.process import adopt_orphans
from shared.telemetry.instruments import open_instruments
from tests.support import pool_child
from workers.pool.forkserver import ForkServer, Target
from workers.pool.meters import PoolMeters
from workers.pool.pool import Limits, Pool
from workers.pool.slot import End, Job


class PoolBench:
    """A pool and the ends that it gave."""

    def __init__(self, home: Path, size: int, grace: float, target: Target) -> None:
        self.instruments = open_instruments(home, "test")
        self.ends: list[End] = []
        self.server = ForkServer(target, ["tests.support.pool_child"], home)
        meters = PoolMeters(self.instruments, "test")
        self.pool = Pool(self.server, Limits(size, grace), self.ends.append, meters)
        self._key = 0

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
        self._key += 1
        line = json.dumps({"id": str(self._key), "args": {"do": do, **args}})
        self.pool.give(Job(self._key, line.encode(), timeout))
        return self._key

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
    home: Path, size: int = 2, grace: float = 0.5, target: Target = pool_child.main
) -> Iterator[PoolBench]:
    """Make a pool; close it at the end."""
    adopt_orphans()
    bench = PoolBench(home, size, grace, target)
    try:
        yield bench
    finally:
        bench.pool.close()
        bench.instruments.close()
