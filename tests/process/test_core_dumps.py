"""A child that crashes leaves no core file, which would hold secrets; what it died of is told."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import Program
from tests.support.queue import TestQueue, children_of, queue, server_of
from tests.support.waiting import until

__all__ = ["queue"]


@pytest.fixture
def allowed() -> Iterator[None]:
    """What we start may leave core files, as far as this machine lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))


def started(queue: TestQueue, **env: str) -> Program:
    """A queue process in a folder of its own, where the kernel would put cores by default."""
    command = [sys.executable, "-P", "-m", "workers", "t"]
    program = queue.programs.execute(command, {**queue.env, **env}, cwd=queue.programs.home)
    until(lambda: queue.ready_epochs() or not program.running(), 60, "it is ready")
    assert program.running(), program.text()
    return program


def core_limits(program: Program) -> set[tuple[int, int]]:
    """Of the parent, its fork server and its children."""
    pids = (program.pid, server_of(program), *children_of(program))
    return {resource.prlimit(pid, resource.RLIMIT_CORE) for pid in pids}


def test_a_child_that_crashes_leaves_no_core_and_its_signal_is_told(
    queue: TestQueue, allowed: None
) -> None:
    program = started(queue)
    assert core_limits(program) == {(0, 0)}
    child = queue.begun(queue.enqueue("stuck", timeout=60), timeout=30)["pid"]
    assert Path(f"/proc/{child}/cwd").readlink() == queue.programs.home
    job = queue.enqueue("die", {"signal": int(signal.SIGSEGV)}, max_attempts=1)
    last = queue.final(job)
    assert (last["outcome"], last["cause"]) == ("crashed", "SIGSEGV")
    assert "signal 11" in last["error"]
    os.kill(child, signal.SIGKILL)
    assert [file.name for file in queue.programs.home.glob("core*")] == []


def test_who_asks_for_core_files_keeps_the_limits_that_there_are(
    queue: TestQueue, allowed: None
) -> None:
    program = started(queue, WEIRKEEPER_CORE_DUMPS="yes")
    assert core_limits(program) == {resource.getrlimit(resource.RLIMIT_CORE)}
