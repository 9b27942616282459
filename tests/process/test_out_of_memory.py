"""A child that the kernel kills for want of memory, for real: in a cgroup that holds little."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.queue import TestQueue, children_of, queue
from tests.support.waiting import until

__all__ = ["queue"]

LIMIT = 300  # MiB
ROOT = Path("/sys/fs/cgroup")


@pytest.fixture
def little() -> Iterator[Path]:
    """A cgroup of its own, where this user may make one."""
    old = (ROOT / "memory").is_dir()
    group = (ROOT / "memory" if old else ROOT) / f"test-{os.getpid()}"
    limit = group / ("memory.limit_in_bytes" if old else "memory.max")
    try:
        group.mkdir()
        limit.write_text(str(LIMIT << 20))
    except OSError as error:
        with suppress(OSError):
            group.rmdir()
        pytest.skip(f"no cgroup can be made here: {error}")
    yield group
    until(lambda: not (group / "cgroup.procs").read_text(), 20, "nobody is left in the cgroup")
    group.rmdir()


def test_it_is_told_apart_from_other_kills(little: Path, queue: TestQueue) -> None:
    program = queue.start()
    for pid in children_of(program):
        (little / "cgroup.procs").write_text(str(pid))
    job = queue.enqueue("hold_and_die", {"mib": 3 * LIMIT}, max_attempts=1)
    last = queue.final(job, 30)
    assert (last["outcome"], last["state"]) == ("crashed", "discarded")
    assert (last["cause"], last["evidence"]["signal"]) == ("out_of_memory", "SIGKILL")
    assert last["evidence"]["out_of_memory"] is True
    assert last["error"] == "child killed by the kernel, out of memory (signal 9)"
    assert queue.final(queue.enqueue("ok"))["outcome"] == "completed"
    program.terminate()
