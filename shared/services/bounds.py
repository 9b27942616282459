"""Bounds that the kernel keeps for this process: memory, open files, no new privileges.

Used by a child around a job of a kind with limits. Only soft limits are set, so that they can be
lifted again.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MIB = 1024 * 1024


def _data() -> int:
    """Bytes of private memory that this process has asked for."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    return pages * resource.getpagesize()


@contextmanager
def bounded(memory_mib: int | None, open_files: int | None) -> Iterator[None]:
    """Run with these bounds; None = as it is.

    Args:
        memory_mib: of private memory by which this process may grow; then allocations fail.
        open_files: highest number of a file descriptor.
    """
    before = {}
    for what, bound in (
        (resource.RLIMIT_DATA, None if memory_mib is None else _data() + memory_mib * MIB),
        (resource.RLIMIT_NOFILE, open_files),
    ):
        if bound is not None:
            soft, hard = resource.getrlimit(what)
            before[what] = (soft, hard)
            most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(what, (most, hard))
    try:
        yield
    finally:
        for what, bounds in before.items():
            resource.setrlimit(what, bounds)
