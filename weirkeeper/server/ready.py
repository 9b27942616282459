"""Waiting until every process is ready, as their rows in the database tell.

supervisord's own word is no help: RUNNING means "did not exit within startsecs".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from shared.clock import SYSTEM
from shared.errors import ConfigurationError, WeirkeeperError
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.processes.registry import processes
from shared.postgres.schema.migrator import applied
from shared.services import exit_codes
from shared.services.process import ProcessIdentity, is_alive
from shared.services.stop import StopSignal
from weirkeeper.server.supervisor import ProgramState, Supervisor

LOOK = 0.05  # seconds between looks at the process rows
LOOK_AT_PROGRAMS = 1.0  # seconds between questions to supervisord
REMIND = 10.0  # seconds until a line says what is waited for, then twice as long each time

Role = tuple[str, str | None]  # role and queue


def expected_roles(queues: Iterable[str]) -> set[Role]:
    """Which processes a whole server has."""
    single: set[Role] = {("relay", None), ("listener", None), ("metrics", None)}
    return single | {("queue", name) for name in queues}


class Readiness:
    """Watches one start.

    Args:
        url: of the database.
        expected: from expected_roles.
        supervisor: asked for programs that cannot start.
        logs: folder of the programs' logs.
    """

    def __init__(self, url: str, expected: set[Role], supervisor: Supervisor, logs: Path) -> None:
        self._url = url
        self._expected = expected
        self._supervisor = supervisor
        self._logs = logs
        self._connection: Connection | None = None
        self._trouble = ""  # why the database told nothing, when last asked

    def wait(self, stop: StopSignal, tell: Callable[[str], None]) -> dict[str, str] | None:
        """Wait for all of them, however long it takes.

        Args:
            stop: ends the wait.
            tell: now and then gets a line that says what is missing.

        Returns:
            Address by role, or None when a stop was asked for or supervisord ended.

        Raises:
            ConfigurationError: a program refuses to start.
        """
        next_question = next_reminder = 0.0
        pause = REMIND
        try:
            while not stop.requested and self._supervisor.running():
                ready = self._ready_roles()
                if self._expected <= ready.keys():
                    return {role: address for (role, _), address in ready.items() if address}
                now = SYSTEM.monotonic()
                if now >= next_question:
                    self._refuse_failed()
                    next_reminder = next_reminder or now + REMIND
                    next_question = now + LOOK_AT_PROGRAMS
                if now >= next_reminder:
                    tell(self._waiting(ready))
                    next_reminder, pause = now + pause, 2 * pause
                stop.wait(LOOK)
            return None
        finally:
            self._disconnect()

    def _waiting(self, ready: Mapping[Role, str]) -> str:
        if self._trouble:
            return f"waiting for the database: {self._trouble} (logs are in {self._logs})"
        late = self._expected - ready.keys()
        have = len(self._expected) - len(late)
        return (
            f"{have} of {len(self._expected)} processes are ready; waiting for {_names(late)} "
            "(a busy machine takes longer)"
        )

    def _ready_roles(self) -> dict[Role, str]:
        self._trouble = ""
        try:
            if self._connection is None:
                self._connection = connect(self._url, "server", Use.READ)
            if not applied(self._connection):
                return {}  # about to be migrated: there is no table to read yet
            rows = processes(self._connection)
        except WeirkeeperError as error:
            self._trouble = str(error)
            self._disconnect()
            return {}
        return {
            (row["role"], row["queue"]): row["address"] or ""
            for row in rows
            if row["phase"] == "ready" and is_alive(_identity(row))
        }

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _refuse_failed(self) -> None:
        failed = [p.name for p in self._supervisor.states() if _failed(p)]
        for name in (*self._supervisor.refusals(), *failed):
            raise ConfigurationError(self._told(name))

    def _told(self, name: str) -> str:
        log = self._logs / f"{name}.log"
        try:
            last = [line for line in log.read_text(errors="replace").splitlines() if line][-1]
        except (OSError, IndexError):
            last = "it wrote nothing"
        if last.startswith("{"):
            last = _message(last)
        return f"program {name} does not start: {last} (more in {log})"


def _failed(program: ProgramState) -> bool:
    if program.name == "migrate" and program.state == "EXITED":
        return program.exit_code != exit_codes.OK
    return program.state == "FATAL"


def _identity(row: Mapping[str, Any]) -> ProcessIdentity:
    names = ("host", "boot_id", "pid_namespace", "pid", "pid_started")
    return ProcessIdentity(**{name: row[name] for name in names})


def _names(roles: Iterable[Role]) -> str:
    return ", ".join(sorted(queue or role for role, queue in roles))


def _message(line: str) -> str:
    try:
        return str(json.loads(line)["message"])
    except (ValueError, KeyError, TypeError):
        return line
