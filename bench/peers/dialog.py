"""One process of a rival: a JSON command a line, an answer a line, each with a deadline."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE = 120.0  # seconds for an answer
LEAVE = 10.0  # seconds to end after standard input did


class Dialog:
    """Speaks with a rival's driver.

    Args:
        command: starts it, on a database.
        log: where its standard error goes.
    """

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._heard = b""

    def ask(self, command: str, **given: Any) -> dict[str, Any]:
        """Send a command; return its answer."""
        assert self._process.stdin is not None
        line = json.dumps({"command": command, **given}) + "\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        return self.hear()

    def hear(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The next answer.

        Raises:
            RuntimeError: none came in time, or the process ended; with its last words.
        """
        assert self._process.stdout is not None
        deadline = time.monotonic() + patience
        while b"\n" not in self._heard:
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._process.stdout], [], [], left)
            chunk = os.read(self._process.stdout.fileno(), 65_536) if ready else b""
            if not chunk:
                words = self._log.read_text(errors="replace")[-2000:]
                raise RuntimeError(f"no answer of {self._process.args!r}:\n{words}")
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(LEAVE)
        self._process.stdout.close()
