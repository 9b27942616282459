"""Start our programs as real processes, each test with a home folder of its own.

Everything that a test starts carries its WEIRKEEPER_HOME in the environment; whatever still lives
after the teardown is a leak: it is killed by its id, and the test fails.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
PATIENCE = 2.0  # seconds for an end in order, which no test asked for


class Program:
    """One started program, its standard output and error in one log file."""

    def __init__(
        self, command: list[str], environment: Mapping[str, str], log: Path, cwd: Path = ROOT
    ) -> None:
        self.log = log
        self._out = log.open("wb")
        self.popen = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    def text(self) -> str:
        """All that it has written so far."""
        return self.log.read_text(errors="replace")

    def records(self) -> Iterator[dict[str, Any]]:
        """Its log records (lines that are JSON objects)."""
        for line in self.text().splitlines():
            if line.startswith("{"):
                yield json.loads(line)

    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    def wait(self, timeout: float) -> int:
        """Wait for its end; return its exit code."""
        try:
            return self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs after {timeout:g} s:\n{self.text()}") from None

    def ends_by(self, deadline: float) -> bool:
        """Whether it has ended by then, in seconds of the monotonic clock."""
        try:
            self.popen.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        return True

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def terminate(self, timeout: float = 30) -> int:
        """SIGTERM, then wait; return the exit code."""
        self.send(signal.SIGTERM)
        return self.wait(timeout)

    def close(self) -> None:
        """Close the log file."""
        self._out.close()


class Programs:
    """Starts programs of one test and ends them all."""

    def __init__(self, home: Path, database_url: str) -> None:
        self.home = home
        self.environment = {
            **{name: os.environ[name] for name in KEPT if name in os.environ},
            "WEIRKEEPER_HOME": str(home),
            "WEIRKEEPER_LISTENER_PORT": "0",
            "WEIRKEEPER_METRICS_PORT": "0",
            "WEIRKEEPER_POSTGRES_PORT": "0",
            "DATABASE_URL": database_url,
        }
        self._started: list[Program] = []

    def start(self, module: str, *arguments: str, env: Mapping[str, str] | None = None) -> Program:
        """Start `python -P -m MODULE ARGUMENTS`.

        Args:
            module: relay, workers, listener, metrics, weirkeeper.server, ….
            arguments: given on.
            env: settings over those of the test; "" unsets one.
        """
        return self.execute([sys.executable, "-P", "-m", module, *arguments], env)

    def execute(
        self, command: list[str], env: Mapping[str, str] | None = None, cwd: Path = ROOT
    ) -> Program:
        """Start any command in the test's environment."""
        environment = {**self.environment, **(env or {})}
        name = "-".join(Path(part).name for part in command if not part.startswith("-"))[:60]
        log = self.home / f"{len(self._started):02d}-{name.replace('/', '_')}.out"
        program = Program(command, {k: v for k, v in environment.items() if v}, log, cwd)
        self._started.append(program)
        return program

    def close(self) -> None:
        """End everything: SIGTERM, SIGKILL for what stays; then fail on what leaked.

        A queue process that would wait for a job which a test left behind hears it twice.
        """
        left = [program for program in self._started if program.running()]
        for seconds in (PATIENCE, 30):
            for program in left:
                program.send(signal.SIGTERM)
            deadline = time.monotonic() + seconds
            left = [program for program in left if not program.ends_by(deadline)]
        for program in left:
            program.popen.kill()
            program.popen.wait(10)
        for program in self._started:
            program.close()
        try:
            until(lambda: not self.living(), 5, "every process of the test is gone")
        except AssertionError:
            left = {pid: _command(pid) for pid in self.living()}
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"leaked processes: {left}") from None
        finally:
            _remove_data(self.home)

    def living(self) -> list[int]:
        """Ids of processes that carry this test's home in their environment."""
        marker = f"WEIRKEEPER_HOME={self.home}".encode()
        return [pid for pid in _pids() if marker in _environment(pid)]


def alive_with(mark: str) -> list[int]:
    """Ids of living processes (zombies are not) with this in their command line."""
    return [
        pid
        for pid in _pids()
        if mark in _command(pid) and not set("ZX") & set(_state(pid)) and pid != os.getpid()
    ]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def _remove_data(home: Path) -> None:
    """When root started a server, its data lies elsewhere (weirkeeper/server/folders.py)."""
    for link in home.rglob("postgres"):
        if link.is_symlink():
            shutil.rmtree(link.resolve().parent, ignore_errors=True)


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _command(pid: int) -> str:
    try:
        return (
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        )
    except OSError:
        return "gone"
