"""For an application's own tests: the engine without a database, and what to assert about it.

The application hands `MemoryRuntime(app)` to its code instead of `weirkeeper.Jobs`; its recorder
instead of `weirkeeper.Recorder`. Nothing runs by itself: `run_due` runs jobs in the test's thread,
and `clock.advance` lets time pass. What it promises is what Postgres promises (one contract suite),
but for timeouts and the death of processes, which need processes. See docs/testing.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.inspect import Job
from shared.memory.clock import StoppedClock
from shared.memory.matches import contains
from shared.memory.runtime import MemoryRuntime
from shared.memory.transaction import MemoryTransaction

__all__ = [
    "MemoryRuntime",
    "MemoryTransaction",
    "StoppedClock",
    "assert_enqueued",
    "assert_not_enqueued",
    "enqueued",
]


def enqueued(runtime: MemoryRuntime, kind: str, args: Mapping[str, Any] | None = None) -> list[Job]:
    """Jobs of a kind that were enqueued and committed, oldest first, whatever became of them.

    Args:
        runtime: the application's.
        kind: its name.
        args: contained in the job's args; None = any.
    """
    rows = [row for row in runtime.store.committed() if row.kind.name == kind]
    part = {} if args is None else dict(args)
    return [row.job(whole=True) for row in reversed(rows) if contains(row.args, part)]


def assert_enqueued(
    runtime: MemoryRuntime,
    kind: str,
    args: Mapping[str, Any] | None = None,
    *,
    times: int | None = None,
) -> list[Job]:
    """Assert that jobs of a kind were enqueued.

    Args:
        runtime: the application's.
        kind: its name.
        args: contained in the job's args; None = any.
        times: exactly so many; None = at least one.

    Returns:
        Those jobs, oldest first.

    Raises:
        AssertionError: tells what was enqueued instead.
    """
    found = enqueued(runtime, kind, args)
    if (times is None and not found) or (times is not None and len(found) != times):
        wanted = "at least one" if times is None else str(times)
        raise AssertionError(
            f"expected {wanted} of {_told(kind, args)}; got {len(found)}; enqueued: {_all(runtime)}"
        )
    return found


def assert_not_enqueued(
    runtime: MemoryRuntime, kind: str, args: Mapping[str, Any] | None = None
) -> None:
    """Assert that no such job was enqueued; as assert_enqueued with `times=0`."""
    assert_enqueued(runtime, kind, args, times=0)


def _told(kind: str, args: Mapping[str, Any] | None) -> str:
    return kind if args is None else f"{kind} {dict(args)}"


def _all(runtime: MemoryRuntime) -> str:
    rows = [*runtime.store.committed()]
    return ", ".join(_told(row.kind.name, row.args) for row in reversed(rows)) or "nothing"
