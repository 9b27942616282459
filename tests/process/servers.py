"""A whole server as a test sees it: started, ready, asked, stopped."""

from __future__ import annotations

import json
import os
import pwd
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg

from tests.support.processes import Program, Programs
from tests.support.waiting import until
from weirkeeper.server import postmaster
from weirkeeper.server.account import Account

START = 90.0  # seconds, on a busy machine with a first initdb
STOP = 60.0


def can_nobody_run_python() -> bool:
    """Whether root runs the tests and an ordinary user can enter Python's folder."""
    entry = pwd.getpwnam("nobody")
    return os.geteuid() == 0 and Account("nobody", entry.pw_uid, entry.pw_gid).can_run(
        Path(sys.executable)
    )


class Server:
    """One `python -P -m weirkeeper.server`, or another program that becomes one."""

    def __init__(
        self,
        programs: Programs,
        env: Mapping[str, str] | None = None,
        program: Program | None = None,
    ) -> None:
        self.home = Path({**programs.environment, **(env or {})}["WEIRKEEPER_HOME"])
        self.program = program or programs.start("weirkeeper.server", env=env)

    def until_ready(self) -> Server:
        """Wait for its greeting."""
        until(self._greeted, START, "the server is ready")
        return self

    def _greeted(self) -> bool:
        assert self.program.running(), self.told()
        return "Ctrl-C drains" in self.program.text()

    def told(self) -> str:
        """What it and its programs said."""
        logs = sorted((self.home / "log").glob("*.log"))
        parts = [f"== {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in logs]
        return "\n".join([self.program.text(), *parts])

    def published(self) -> dict[str, Any]:
        """Its server.json."""
        return json.loads((self.home / "run" / "server.json").read_text())

    def ask(self, statement: str) -> Any:
        """The first column of the first row, from its database."""
        with psycopg.connect(self.published()["database_url"], autocommit=True) as connection:
            row = connection.execute(statement).fetchone()
        return row[0] if row else None

    def addresses(self) -> dict[str, str]:
        """Addresses by name, from its greeting."""
        return dict(
            re.findall(r"^  (listener|metrics) +http://([^/]+)/", self.program.text(), re.MULTILINE)
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop; return its exit code."""
        self.program.send(number)
        return self.program.wait(STOP)

    def supervisord(self) -> int:
        """Its supervisord's process id."""
        return int((self.home / "run" / "supervisord.pid").read_text())

    def postmaster(self) -> postmaster.Postmaster | None:
        """Its Postgres, if one runs."""
        return postmaster.find((self.home / "postgres").resolve())
