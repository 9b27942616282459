"""What the pool counts, bound to its queue. Names and labels: docs/metrics.md."""

from __future__ import annotations

from shared.clock import SYSTEM, Clock
from shared.telemetry.instruments import Instruments

MIB = 1 << 20


class PoolMeters:
    """Counts starts, kills and ends of children, and how many can run or do run a job."""

    def __init__(self, instruments: Instruments, queue: str, clock: Clock = SYSTEM) -> None:
        self._instruments = instruments
        self._queue = queue
        self._slots = instruments.pool_slots.labels(queue)
        self._busy = instruments.pool_busy_slots.labels(queue)
        self._busy_seconds = instruments.pool_busy_seconds_total.labels(queue)
        self._memory = instruments.child_memory_max_bytes.labels(queue)
        self._most = 0.0
        self._saturated_seconds = instruments.pool_saturated_seconds_total.labels(queue)
        self._clock = clock
        self._last = (clock.monotonic(), 0, 0)  # when children were counted, ready and busy ones

    def children(self, ready: int, busy: int, memory: float = 0.0) -> None:
        """Set how many children can run a job, and how many do; call it each turn.

        Args:
            ready: can run one.
            busy: do.
            memory: the most that one was seen to hold, in MiB.
        """
        now = self._clock.monotonic()
        at, could, did = self._last
        self._last = (now, ready, busy)
        if did:
            self._busy_seconds.inc(did * (now - at))
            if did >= could:
                self._saturated_seconds.inc(now - at)
        self._slots.set(ready)
        self._busy.set(busy)
        if memory > self._most:
            self._most = memory
            self._memory.set(memory * MIB)

    def started(self, reason: str) -> None:
        """Count a child started: to fill the pool, or to replace another."""
        self._instruments.child_starts_total.labels(self._queue, reason).inc()

    def killed(self, reason: str) -> None:
        """Count a child that we killed."""
        self._instruments.child_kills_total.labels(self._queue, reason).inc()

    def recycled(self, reason: str) -> None:
        """Count a child that had served long enough: jobs, age, memory."""
        self._instruments.child_recycles_total.labels(self._queue, reason).inc()

    def ended(self, cause: str) -> None:
        """Count a child that ended: signal, exit, lost, or left (was told to)."""
        self._instruments.child_exits_total.labels(self._queue, cause).inc()

    def turned(self) -> None:
        """Say that the pool's loop turned."""
        self._instruments.turned("pool")
