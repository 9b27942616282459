"""A pool with foreign programs, in the test's own process, with a loop that the test turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from shared.services.process import adopt_orphans
from tests.support import pool_child
from tests.support.pools import PoolBench
from workers.pool.chunk import End
from workers.pool.limits import Limits
from workers.pool.meters import PoolMeters
from workers.pool.mixed import Foreign, MixedPool
from workers.pool.watch import Allowed


class ProgramJob(NamedTuple):
    """A job with its kind."""

    job_id: int
    line: bytes
    timeout: float
    kind: str


class ProgramBench(PoolBench):
    """A mixed pool and the ends that it gave."""

    def __init__(
        self, home: Path, size: int, foreign: Foreign, allowed: Mapping[str, Allowed]
    ) -> None:
        limits = Limits(size, 0.5, allowed=allowed)
        super().__init__(home, limits, pool_child.main)
        meters = PoolMeters(self.instruments, "test")
        self.size = size
        self.pool: MixedPool = MixedPool(self.server, limits, self, meters, foreign)

    def ready(self) -> None:
        """Turn until as many jobs can be begun as there are places."""
        self.turn_until(lambda: self.pool.free == self.size, 20, "all places are free")

    def give(self, do: str, timeout: float = 30, kind: str = "", **args: Any) -> int:
        """Hand over a job; return its key."""
        self._key += 1
        told = {"id": str(self._key), "kind": kind, "args": {"do": do, **args}}
        line = json.dumps(told, ensure_ascii=False).encode()
        self.pool.give([ProgramJob(self._key, line, timeout, kind)])
        return self._key

    def end(self, key: int, timeout: float = 20) -> End:
        """Turn until a job has ended."""
        return super().end(key, timeout)


@contextmanager
def program_bench(
    home: Path, foreign: Foreign, size: int = 2, allowed: Mapping[str, Allowed] | None = None
) -> Iterator[ProgramBench]:
    """Make a pool; close it at the end."""
    adopt_orphans()
    bench = ProgramBench(home, size, foreign, allowed or {})
    try:
        yield bench
    finally:
        bench.pool.close()
        bench.instruments.close()
