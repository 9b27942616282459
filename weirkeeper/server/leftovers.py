"""Processes of an earlier server with this home, still draining after it was killed.

When a server or its supervisord dies, the kernel sends SIGTERM to what they started. A new server
waits for those before it starts its own: their slots, ports and database are the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from shared.clock import SYSTEM
from shared.errors import ConfigurationError
from shared.services.process import wait_until_gone

PAUSE = 0.1  # seconds between looks


def wait_for_end(home: Path, seconds: float, tell: Callable[[str], None]) -> None:
    """Wait until no supervised process with this home is left.

    Args:
        home: whose processes.
        seconds: how long they may take to drain.
        tell: gets one line when there is something to wait for.

    Raises:
        ConfigurationError: some still live; named with their ids.
    """
    deadline = SYSTEM.monotonic() + seconds
    said = False
    while left := supervised(home):
        names = ", ".join(f"{name} ({pid})" for pid, name in sorted(left.items()))
        if not said:
            tell(f"waiting for processes of an earlier server to drain: {names}")
            said = True
        if SYSTEM.monotonic() > deadline:
            raise ConfigurationError.of(
                "WEIRKEEPER_HOME",
                "a folder whose former processes are gone",
                f"{names} after {seconds:g} s",
                "stop them, or set WEIRKEEPER_HOME to another folder",
            )
        wait_until_gone(min(left), PAUSE)


def supervised(home: Path) -> dict[int, str]:
    """Processes that run under a supervisord with this home, and that supervisord itself."""
    marker = b"WEIRKEEPER_HOME=" + os.fsencode(home)
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if marker in environment and (name := _role(environment, command)):
            found[int(entry.name)] = name
    return found


def _role(environment: list[bytes], command: bytes) -> str:
    if b"supervisor.supervisord" in command or b"bin/supervisord" in command:
        return "supervisord"
    for variable in environment:
        if variable.startswith(b"SUPERVISOR_PROCESS_NAME="):
            return variable.partition(b"=")[2].decode(errors="replace")
    return ""
