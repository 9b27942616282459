"""Processes of an earlier server with this home, still draining after it was killed.

When a server or its supervisord dies, the kernel sends SIGTERM to what they started. A new server
waits for those before it starts its own: their slots, ports and database are the same.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from shared.clock import SYSTEM
from shared.errors import ConfigurationError
from shared.services.process import wait_until_gone

PAUSE = 0.1  # seconds between looks
OTHERS = 90.0  # seconds for relay, listener, metrics, migrate and postgres, beside the queues
SUPERVISORD = "supervisord"


def wait_for_end(
    home: Path,
    drain: float,
    tell: Callable[[str], None],
    given_up: Callable[[], bool] = lambda: False,
) -> bool:
    """Wait until no supervised process with this home is left.

    What still lives after a whole drain and has no supervisord gets SIGTERM: it never heard that it
    should end. Not earlier, because a second SIGTERM cuts a drain short.

    Args:
        home: whose processes.
        drain: seconds that queue processes may take to drain; OTHERS more until it gives up.
        tell: gets one line when there is something to wait for.
        given_up: asked now and then whether to wait no longer.

    Returns:
        Whether none is left; False only when it was given up.

    Raises:
        ConfigurationError: some still live; named with their ids.
    """
    began = SYSTEM.monotonic()
    said = sent = False
    while left := supervised(home):
        passed = SYSTEM.monotonic() - began
        names = ", ".join(f"{name} ({pid})" for pid, name in sorted(left.items()))
        if given_up():
            return False
        if not said:
            tell(f"waiting for processes of an earlier server to drain: {names}")
            said = True
        if passed > drain and not sent:
            _terminate_orphans(left)
            sent = True
        if passed > drain + OTHERS:
            raise _still_there(names, passed)
        wait_until_gone(min(left), PAUSE)
    return True


def _still_there(names: str, seconds: float) -> ConfigurationError:
    return ConfigurationError.of(
        "WEIRKEEPER_HOME",
        "a folder whose former processes are gone",
        f"{names} after {seconds:.0f} s",
        "stop them, or set WEIRKEEPER_HOME to another folder",
    )


def _terminate_orphans(left: Mapping[int, str]) -> None:
    """Send SIGTERM to those that no other of them has started."""
    for pid, name in left.items():
        if name != SUPERVISORD:
            with suppress(OSError):
                if _parent(pid) not in left:
                    os.kill(pid, signal.SIGTERM)


def _parent(pid: int) -> int:
    return int(
        Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[1]
    )


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
        return SUPERVISORD
    for variable in environment:
        if variable.startswith(b"SUPERVISOR_PROCESS_NAME="):
            return variable.partition(b"=")[2].decode(errors="replace")
    return ""
