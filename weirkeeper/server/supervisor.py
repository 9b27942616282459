"""The supervisord that `weirkeeper server` starts: its start, what it knows, and its end.

It leads a process group of its own, so that Ctrl-C reaches only us, and dies with us: the kernel
sends it SIGTERM however we end, and it then stops everything in order.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xmlrpc.client
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from supervisor.xmlrpc import SupervisorTransport

from shared.clock import SYSTEM
from shared.services import exit_codes
from weirkeeper.server.compose import CONTROL_USER, Control

_REFUSED = re.compile(rf"exited: (\S+) \(exit status {exit_codes.CONFIGURATION};")
PAUSE = 0.1  # seconds between looks


@dataclass(frozen=True, slots=True)
class ProgramState:
    """What supervisord knows of one program.

    Attributes:
        state: RUNNING, STARTING, BACKOFF, EXITED, FATAL, ….
        exit_code: of its last end, 0 before any.
    """

    name: str
    state: str
    exit_code: int
    pid: int


class Supervisor:
    """One running supervisord.

    Args:
        configuration: written by compose.
        home: WEIRKEEPER_HOME, handed on to every program.
        control: its socket.
    """

    def __init__(self, configuration: Path, home: Path, control: Control) -> None:
        self._control = control
        self._log = home / "log" / "supervisord.log"
        self._log_began = self._log.stat().st_size if self._log.exists() else 0
        self._said = home / "log" / "supervisord.out"
        self.process = subprocess.Popen(
            [
                "/usr/bin/env",
                f"WEIRKEEPER_HOME={home}",
                f"WEIRKEEPER_PYTHON={sys.executable}",
                sys.executable,
                "-P",
                "-m",
                "weirkeeper.server.bound",
                str(os.getpid()),
                "supervisor.supervisord",
                "-c",
                str(configuration),
            ],
            stdin=subprocess.DEVNULL,
            stdout=self._said.open("wb"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    def last_words(self) -> str:
        """What it wrote before it ended, in one line."""
        said = self._said.read_text(errors="replace").split("\nFor help")[0].split()
        return " ".join(said) or f"exit code {self.process.returncode}, see {self._said.parent}"

    def states(self) -> list[ProgramState]:
        """Every program's state; none while its socket does not answer."""
        transport = SupervisorTransport(
            CONTROL_USER, self._control.password, f"unix://{self._control.socket}"
        )
        proxy = xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)
        try:
            rows = cast("list[dict[str, Any]]", proxy.supervisor.getAllProcessInfo())
        except (OSError, xmlrpc.client.Error):
            return []
        return [ProgramState(r["name"], r["statename"], r["exitstatus"], r["pid"]) for r in rows]

    def refusals(self) -> list[str]:
        """Programs that have exited with 78 in this life of supervisord.

        Its interface forgets the exit code of a program that ends within startsecs; its log does
        not.
        """
        if not self._log.exists():
            return []
        with self._log.open(encoding="utf-8", errors="replace") as log:
            log.seek(self._log_began)
            return _REFUSED.findall(log.read())

    def stop(self, seconds: float, turned: Callable[[], None] = lambda: None) -> bool:
        """Ask it to stop everything in order and wait; return whether it did in time.

        Args:
            seconds: it may take.
            turned: called now and then meanwhile.
        """
        if self.running():
            self.process.terminate()
        deadline = SYSTEM.monotonic() + seconds
        while not self._ended():
            if SYSTEM.monotonic() > deadline:
                return False
            # Any request wakes its loop, which otherwise looks once a second, group after group.
            self.states()
            turned()
        return True

    def _ended(self) -> bool:
        """Wait a moment for its end; return whether it came."""
        try:
            self.process.wait(PAUSE)
        except subprocess.TimeoutExpired:
            return False
        return True
