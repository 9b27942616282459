"""What tells one operating-system process from every other, and ties its life to its parent's.

Linux only: /proc and prctl. A pid alone says nothing after a restart or in another namespace, so
an identity is (boot, pid namespace, pid, start time).
"""

from __future__ import annotations

import ctypes
import os
import resource
import select
import signal
import socket
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_STATE, _START_TIME = 0, 19  # fields of /proc/PID/stat after the command's closing parenthesis


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Who a process is. `pid_started` counts clock ticks since boot."""

    host: str
    boot_id: str
    pid_namespace: int
    pid: int
    pid_started: int

    def same_host(self, other: ProcessIdentity) -> bool:
        """Whether both pids mean the same thing: one boot, one pid namespace."""
        return (self.boot_id, self.pid_namespace) == (other.boot_id, other.pid_namespace)


def identity(pid: int | None = None) -> ProcessIdentity:
    """Identity of a process on this host (default: this one)."""
    number = os.getpid() if pid is None else pid
    started = start_time(number)
    return ProcessIdentity(
        host=socket.gethostname(),
        boot_id=Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip(),
        pid_namespace=Path("/proc/self/ns/pid").stat().st_ino,
        pid=number,
        pid_started=started or 0,
    )


def life_mark(epoch: int, pid: int, pid_started: int) -> str:
    """What everything that a process starts carries in its environment, to be found by.

    Unique on a host: epochs alone are not, with two databases.
    """
    return f"{epoch}:{pid}:{pid_started}"


def start_time(pid: int) -> int | None:
    """When the process started, in ticks since boot; None = no such process, or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[_STATE] in ("Z", "X") else int(fields[_START_TIME])


def is_alive(other: ProcessIdentity) -> bool:
    """Whether a process of this host lives; one of another host, or unreadable, counts as alive."""
    if not identity().same_host(other):
        return True
    try:
        return start_time(other.pid) == other.pid_started
    except OSError:
        return True


def wait_until_gone(pid: int, seconds: float) -> bool:
    """Wait until a process of this host has ended, ours or not.

    Args:
        pid: of a process that lived a moment ago.
        seconds: how long to wait at most.

    Returns:
        Whether it has ended.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        ended, _, _ = select.select([handle], [], [], seconds)
    finally:
        os.close(handle)
    return bool(ended)


def die_with_parent(number: signal.Signals, parent: int | None = None) -> None:
    """Have the kernel send this process a signal when the thread that started it ends.

    Args:
        number: the signal.
        parent: pid that must still be the parent; if it is gone already, the signal is sent now.
    """
    _prctl(_PR_SET_PDEATHSIG, number)
    if parent is not None and os.getppid() != parent:
        os.kill(os.getpid(), number)


def forbid_new_privileges() -> None:
    """Have no program that this process starts gain rights (setuid, setgid, capabilities)."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forbid_core_dumps() -> None:
    """Have neither this process nor what it starts leave a core file: it would hold secrets.

    A program that the kernel pipes cores into is told of the limit, and has to keep to it.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def keep_files_private() -> None:
    """Have files and sockets of this process, and of what it starts, be for its own user alone.

    Logs, metrics and settings tell of jobs and of secrets. What others are to read gets its mode by
    name (what Postgres reads as another user, when root starts it).
    """
    os.umask(0o077)


def adopt_orphans() -> None:
    """Become the reaper of everything that this process's descendants leave behind."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_main_thread(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process's main thread, and to no other.

    Python runs handlers there; a signal to the process may land in any thread and leave the main
    one asleep in its system call.

    Raises:
        ProcessLookupError: no such process.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.tgkill(pid, pid, number) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
