"""What a process uses of memory and CPU time, and what the kernel killed for want of memory.

Read by the pool, which samples its children with it, and by a child about itself. Never blocks.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

KIB = 1024
_USER_TIME, _SYSTEM_TIME = 11, 12  # fields of /proc/PID/stat after the command's parenthesis
_TICKS = os.sysconf("SC_CLK_TCK")
_CGROUPS = Path("/sys/fs/cgroup")
NEAR = 0.9  # share of the memory that there is from which on a SIGKILL is taken for want of it


class Usage(NamedTuple):
    """CPU time (seconds), memory now and at most (MiB), of a process's life."""

    cpu: float
    rss: float
    peak: float


def usage(pid: int) -> Usage | None:
    """What a process has used; None = it is gone, or a zombie."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    sizes = {
        line[:5]: int(line.split()[1]) / KIB
        for line in status.splitlines()
        if line.startswith(("VmHWM", "VmRSS"))
    }
    if len(sizes) < len(("VmHWM", "VmRSS")):
        return None
    ticks = int(fields[_USER_TIME]) + int(fields[_SYSTEM_TIME])
    return Usage(ticks / _TICKS, sizes["VmRSS"], sizes["VmHWM"])


def own_peak() -> float:
    """The most memory that this process has held, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / KIB


class MemoryEvents:
    """Whether the kernel killed processes lately for want of memory, here or in our cgroup.

    Args:
        counters: files that hold a line "oom_kill N"; those that are missing do not count.
        limits: files that hold the bytes which our cgroup may use.
    """

    def __init__(self, counters: Sequence[Path], limits: Sequence[Path]) -> None:
        self._counters = counters
        self._limits = limits
        self._seen = self._kills()
        self._before = self._seen

    @classmethod
    def of_this_process(cls) -> MemoryEvents:
        """Of the cgroup that this process is in, and of the whole machine."""
        counters, limits = [Path("/proc/vmstat")], []
        try:
            lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
        except OSError:
            lines = []
        for line in lines:
            _, controllers, path = line.split(":", 2)
            if controllers == "memory":
                folder = _CGROUPS / "memory" / path.lstrip("/")
                counters.append(folder / "memory.oom_control")
                limits.append(folder / "memory.limit_in_bytes")
            elif not controllers:
                folder = _CGROUPS / path.lstrip("/")
                counters.append(folder / "memory.events")
                limits.append(folder / "memory.max")
        return cls(counters, limits)

    def look(self) -> None:
        """Take what has happened until now for old; a kill since the look before it is lately."""
        self._before, self._seen = self._seen, self._kills()

    def killed(self) -> bool:
        """Whether the kernel has killed for want of memory since the look before the last."""
        return self._kills() != self._before

    def scarce(self, rss: float) -> bool:
        """Whether so much (MiB) is nearly all that our cgroup may use."""
        return any(rss >= NEAR * limit for limit in map(_mebibytes, self._limits) if limit)

    def _kills(self) -> list[int]:
        return [_counted(path) for path in self._counters]


def _counted(path: Path) -> int:
    try:
        data = b"\n" + path.read_bytes()
    except OSError:
        return 0
    _, found, rest = data.partition(b"\noom_kill ")
    return int(rest.split(maxsplit=1)[0]) if found else 0


def _mebibytes(path: Path) -> float:
    """What a file of a cgroup allows; 0 = no limit, or none that can be read."""
    try:
        text = path.read_text("ascii", "replace").strip()
    except OSError:
        return 0.0
    return int(text) / KIB / KIB if text.isdigit() else 0.0
