"""For an application's own tests: the engine without a database, and what to assert about it.

The application hands `MemoryRuntime(app)` to its code instead of `weirkeeper.Jobs`; its recorder
instead of `weirkeeper.Recorder`. Nothing runs by itself: `run_due` runs jobs in the test's thread,
and `clock.advance` lets time pass. What it promises is what Postgres promises (one contract suite),
but for timeouts and the death of processes, which need processes. See docs/testing.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from shared.errors import InvalidArguments
from shared.jobs.inspect import Job
from shared.jobs.options import EnqueueOpts
from shared.memory.clock import StoppedClock
from shared.memory.matches import contains
from shared.memory.rows import Row
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

_OPTIONS = frozenset(field.name for field in fields(EnqueueOpts))


def enqueued(
    runtime: MemoryRuntime, kind: str, args: Mapping[str, Any] | None = None, **opts: Any
) -> list[Job]:
    """Jobs of a kind that were enqueued and committed, oldest first, whatever became of them.

    Args:
        runtime: the application's.
        kind: its name.
        args: contained in the job's args; None = any.
        opts: options of EnqueueOpts that it was enqueued with, as `priority=1`, equal to these;
            of `tags`, those that it has among others. What was not given is as its kind says.

    Raises:
        InvalidArguments: an option that there is not.
    """
    unknown = set(opts) - _OPTIONS
    if unknown:
        raise InvalidArguments(
            f"options of an enqueued job: expected some of {', '.join(sorted(_OPTIONS))}; "
            f"got {', '.join(sorted(unknown))}; correct it"
        )
    rows = [row for row in runtime.store.committed() if row.kind.name == kind]
    part = {} if args is None else dict(args)
    return [
        row.job(whole=True)
        for row in reversed(rows)
        if contains(row.args, part) and _enqueued_with(row, opts)
    ]


def assert_enqueued(
    runtime: MemoryRuntime,
    kind: str,
    args: Mapping[str, Any] | None = None,
    *,
    times: int | None = None,
    **opts: Any,
) -> list[Job]:
    """Assert that jobs of a kind were enqueued.

    Args:
        runtime: the application's.
        kind: its name.
        args: contained in the job's args; None = any.
        times: exactly so many; None = at least one.
        opts: as of `enqueued`.

    Returns:
        Those jobs, oldest first.

    Raises:
        AssertionError: tells what was enqueued instead.
    """
    found = enqueued(runtime, kind, args, **opts)
    if (times is None and not found) or (times is not None and len(found) != times):
        wanted = "at least one" if times is None else str(times)
        said = f"expected {wanted} of {_told(kind, args, opts)}; got {len(found)}"
        raise AssertionError(f"{said}; enqueued: {_all(runtime)}")
    return found


def assert_not_enqueued(
    runtime: MemoryRuntime, kind: str, args: Mapping[str, Any] | None = None, **opts: Any
) -> None:
    """Assert that no such job was enqueued; as assert_enqueued with `times=0`."""
    assert_enqueued(runtime, kind, args, times=0, **opts)


def _enqueued_with(row: Row, wanted: Mapping[str, Any]) -> bool:
    kinds = ("priority", "max_attempts", "timeout")  # the kind's, where nothing else was said
    return all(
        set(value) <= set(row.opts.tags)
        if name == "tags"
        else getattr(row if name in kinds else row.opts, name) == value
        for name, value in wanted.items()
    )


def _told(kind: str, args: Mapping[str, Any] | None, opts: Mapping[str, Any]) -> str:
    said = kind if args is None else f"{kind} {dict(args)}"
    return said + "".join(f" {name}={value!r}" for name, value in opts.items())


def _all(runtime: MemoryRuntime) -> str:
    return ", ".join(map(_whole, reversed([*runtime.store.committed()]))) or "nothing"


def _whole(row: Row) -> str:
    """A job with the options that were given."""
    said = {name: getattr(row.opts, name) for name in sorted(_OPTIONS)}
    usual = EnqueueOpts()
    return _told(row.kind.name, row.args, {n: v for n, v in said.items() if v != getattr(usual, n)})
