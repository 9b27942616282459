"""Ending a process and everything that it started, found through /proc.

Each child is a subreaper, so whatever its handlers start (with setsid too) stays below it. The
tree is stopped first and walked until nothing new appears, so that it cannot outrun the walk.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from shared.config.env import EPOCH


def kill_tree(pid: int) -> None:
    """SIGKILL a process and all its descendants; harmless when it is gone."""
    _send(pid, signal.SIGSTOP)
    found: set[int] = set()
    while new := descendants(pid) - found:
        for member in new:
            _send(member, signal.SIGSTOP)
        found |= new
    for member in (*found, pid):
        _send(member, signal.SIGKILL)


def descendants(pid: int) -> set[int]:
    """Process ids below a process, at any depth."""
    found: set[int] = set()
    todo = [pid]
    while todo:
        below = children(todo.pop()) - found
        found |= below
        todo.extend(below)
    return found


def children(pid: int) -> set[int]:
    """Direct children of a process, of all its threads; empty when it is gone."""
    found: set[int] = set()
    with suppress(OSError):  # it ends while its threads are listed
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found.update(map(int, (thread / "children").read_text("ascii").split()))
    return found


def bearers(marks: set[str]) -> set[int]:
    """Processes of this user that one of these lives started: they carry its mark."""
    wanted = {f"{EPOCH}={mark}".encode() for mark in marks}
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if not wanted.isdisjoint((entry / "environ").read_bytes().split(b"\0")):
                    found.add(int(entry.name))
    return found


def kill_bearers(marks: set[str]) -> None:
    """End what dead lives left running on this host."""
    if marks:
        for pid in bearers(marks):
            kill_tree(pid)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


class Orphans:
    """What dead children left behind, adopted by this process (a subreaper): killed and reaped.

    Made before any child starts: what this process had started by then is none of it.
    """

    def __init__(self) -> None:
        self._known = children(os.getpid())
        self._dying: set[int] = set()

    def sweep(self, *, own: set[int]) -> bool:
        """Kill newly adopted processes and reap dead ones.

        Args:
            own: children that this process started itself since (the fork server).

        Returns:
            Whether some are still to be reaped.
        """
        for pid in children(os.getpid()) - self._known - own - self._dying:
            kill_tree(pid)
            self._dying.add(pid)
        self._dying = {pid for pid in self._dying if not _reaped(pid)}
        return bool(self._dying)


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
