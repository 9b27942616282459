"""Real programs that start in milliseconds: a process that has imported them forks one for each line.

`python -P -m tests.support.nursery` reads one JSON object a line (module, arguments, environment, log)
and answers with a process id. A child is a process of its own, with its own session and log; only the
imports are shared, so that a test may start and kill a program some thousand times.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.processes import ROOT

MODULES = ("relay.main",)


def serve() -> None:
    """Fork a program for each line, until there are no more."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    for name in (*MODULES, "tests.support.outbox", "shared.site.app", "shared.engine"):
        importlib.import_module(name)
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(order)
        print(pid, flush=True)


def _become(order: Mapping[str, object]) -> None:
    """Run the program to its end, with nothing of ours but the imports."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        log = os.open(str(order["log"]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor, to in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(to, descriptor)
        os.environ.clear()
        os.environ.update(order["environment"])
        from shared import failpoints  # noqa: PLC0415

        failpoints._PLAN = failpoints.parsed(os.environ.get("TEST_FAILPOINTS", ""))
        module = importlib.import_module(str(order["module"]))
        code = module.main(order["arguments"])
    finally:
        os._exit(code)


class Nursery:
    """Starts programs through such a process.

    Args:
        environment: of every program; may be added to for each.
        folder: of the logs.
    """

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = dict(environment)
        self._folder = folder
        self._started: list[int] = []
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.support.nursery"],
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def start(self, module: str, *arguments: str, env: Mapping[str, str] | None = None) -> int:
        """Start a program; return its process id."""
        order = {
            "module": module,
            "arguments": arguments,
            "environment": {**self._environment, **(env or {})},
            "log": str(self._folder / f"{arguments[-1]}.log"),
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(order) + "\n")
        self._server.stdin.flush()
        pid = int(self._server.stdout.readline())
        self._started.append(pid)
        return pid

    def kill(self, pid: int) -> None:
        """End a program as by kill -9; harmless when it has ended."""
        if pid in self._started:
            self._started.remove(pid)
            if self.lives(pid):
                os.kill(pid, signal.SIGKILL)

    def lives(self, pid: int) -> bool:
        """Whether it is a process, and one of ours."""
        try:
            stat = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return False
        state, parent = stat.rpartition(")")[2].split()[:2]
        return state not in "ZX" and int(parent) == self._server.pid

    def close(self) -> None:
        """End all of it."""
        for pid in list(self._started):
            self.kill(pid)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(20)
        self._server.stdout.close()


if __name__ == "__main__":
    serve()
