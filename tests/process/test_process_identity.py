"""Telling one process from every other, and tying its life to its parent's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from shared.services.process import identity, is_alive, start_time, wait_until_gone
from tests.support.processes import ROOT
from tests.support.waiting import until

DIES_WITH_PARENT = """
import os, signal, sys, time
from shared.services.process import die_with_parent
pid = os.fork()
if pid == 0:
    die_with_parent(signal.SIGTERM, os.getppid())
    print(os.getpid(), flush=True)
    signal.pause()
    os._exit(0)
signal.pause()
"""
ADOPTS = """
import os, signal, subprocess, sys
from shared.services.process import adopt_orphans
adopt_orphans()
subprocess.run(["/bin/sh", "-c", "sleep 60 & echo $!"], timeout=10)
print("adopted by", os.getpid(), flush=True)
signal.pause()
"""


@pytest.fixture
def sleeper():
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait(10)


def start(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def status(pid: int, field: str) -> str:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return line.split()[1]
    raise AssertionError(field)


def test_a_process_is_itself_and_nobody_else(sleeper):
    mine, other = identity(), identity(sleeper.pid)
    assert is_alive(mine)
    assert is_alive(other)
    assert mine.same_host(other)
    assert mine != other
    assert mine == identity()


def test_the_same_number_later_is_another_process(sleeper):
    other = identity(sleeper.pid)
    assert not is_alive(replace(other, pid_started=other.pid_started - 1))


def test_what_ended_is_not_alive_even_before_it_is_reaped(sleeper):
    other = identity(sleeper.pid)
    sleeper.kill()
    until(lambda: status(sleeper.pid, "State") == "Z", 20, "it is a zombie")
    assert start_time(sleeper.pid) is None
    assert not is_alive(other)


def test_who_cannot_be_seen_counts_as_alive(sleeper):
    other = identity(sleeper.pid)
    sleeper.kill()
    sleeper.wait(10)
    assert not is_alive(other)
    assert is_alive(replace(other, boot_id="another boot"))
    assert is_alive(replace(other, pid_namespace=other.pid_namespace + 1))


def test_waiting_for_an_end(sleeper):
    assert not wait_until_gone(sleeper.pid, 0.01)
    sleeper.kill()
    assert wait_until_gone(sleeper.pid, 5)
    sleeper.wait(10)
    assert wait_until_gone(sleeper.pid, 5)


def test_a_child_dies_with_its_parent():
    parent = start(DIES_WITH_PARENT)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    parent.kill()
    parent.communicate(timeout=10)
    until(lambda: start_time(child) is None, 20, "the child is gone")


def test_orphans_come_to_who_adopts_them():
    parent = start(ADOPTS)
    assert parent.stdout is not None
    orphan = int(parent.stdout.readline())
    assert parent.stdout.readline() == f"adopted by {parent.pid}\n"
    try:
        assert int(status(orphan, "PPid")) == parent.pid
    finally:
        os.kill(orphan, signal.SIGKILL)
        parent.kill()
        parent.communicate(timeout=10)
