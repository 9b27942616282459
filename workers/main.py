"""The program of one queue, or several: builds the adapters and hands over. `-m workers QUEUE…`.

Stands before workers.queue_process. Waits for the database as long as it takes; refuses what
waiting cannot mend.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, redirect_stdout, suppress
from dataclasses import asdict

from shared.app import App, load_app
from shared.backoff import RECONNECT, jittered
from shared.config import budget
from shared.config.command import Command
from shared.config.env import (
    EPOCH,
    QUEUE,
    environment_of_children,
    environment_without_database,
    hand_down,
)
from shared.config.queues import Queue
from shared.config.settings import Settings
from shared.errors import ConfigurationError, WeirkeeperError
from shared.postgres.driver.connect import Connection, connect
from shared.postgres.driver.limits import usable_connections
from shared.postgres.processes.drains import drained
from shared.postgres.processes.life import Life
from shared.postgres.processes.registry import Registration, needed_by_all
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.work import Owner, PostgresWork
from shared.postgres.schema.boot import wait_for_database
from shared.release import version
from shared.services import exit_codes
from shared.services.process import adopt_orphans, identity, life_mark
from shared.services.program import run
from shared.services.stop import StopSignal
from shared.telemetry.instruments import Instruments, open_instruments
from workers.assignment import Assignment, sealed
from workers.child_main import main as child_main
from workers.drain import Patience
from workers.pool.forkserver import ForkServer
from workers.preload import load
from workers.queue_process import Outside, QueueProcess

PRELOAD = ("workers.child_main", "workers.preload")

log = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a queue process to its end; return its exit code."""
    parser = argparse.ArgumentParser("workers", description="Runs the jobs of one queue.")
    parser.add_argument(
        "queue", nargs="+", help="its name; several share one process, on small machines"
    )
    parser.add_argument("--slot", help="name of this process; default: the queues', with -")
    return run(parser, argv, _body, _check)


def _check(settings: Settings, args: argparse.Namespace) -> dict[str, object]:
    """Refuse what cannot work; tell the queue's numbers and kinds."""
    settings.database()
    app = load_app(settings.app)
    queues = _queues(settings, app, args.queue)
    args.slot = args.slot or _joined(queues, "-").replace("_", "-")
    told = [_told(app, queue, look=args.check) for queue in queues]
    if args.check:
        _check_handlers(_joined(queues))
    return {"slot": args.slot} | (told[0] if len(told) == 1 else {"queues": told})


def _told(app: App, queue: Queue, *, look: bool) -> dict[str, object]:
    """A queue's numbers, kinds and commands; `look` whether the commands are there."""
    commands = _commands(app, queue)
    for what, command in commands.items():
        command.check_variables(what)
        if look:
            command.check_runs(what)
    return {
        "queue": {n: v for n, v in asdict(queue).items() if n not in ("command", "environment")},
        "kinds": sorted(_kinds(app, queue.name)),
        "commands": {
            what: {"argv": command.argv, "environment": command.variables}
            for what, command in commands.items()
        },
    }


def _commands(app: App, queue: Queue) -> dict[str, Command]:
    """What is run in place of our own children, by who names it."""
    named = {f"queue {queue.name}": queue.program}
    for name in _kinds(app, queue.name):
        named[f"kind {name}"] = app.all_kinds[name].program
    return {what: command for what, command in named.items() if command is not None}


def _joined(queues: Sequence[Queue], sign: str = ",") -> str:
    return sign.join(queue.name for queue in queues)


def _check_handlers(queue: str) -> None:
    """Import what the fork server will, as it does; this process ends after it."""
    with redirect_stdout(sys.stderr):  # what a check prints is JSON
        problem = load(queue).problem
    if problem:
        raise ConfigurationError(problem)


def _queues(settings: Settings, app: App, names: Sequence[str]) -> list[Queue]:
    queues = settings.tuned(app.all_queues)
    for name in names:
        if name not in queues:
            raise ConfigurationError.of(
                "queue", f"one of {', '.join(queues)}", name, "correct it or declare the queue"
            )
        if names.count(name) > 1:
            raise ConfigurationError.of(
                "queue", "each once", " ".join(names), "name it once; children are a setting"
            )
    return [queues[name] for name in names]


def _kinds(app: App, queue: str) -> list[str]:
    return [kind.name for kind in app.all_kinds.values() if kind.queue == queue]


def _body(settings: Settings, args: argparse.Namespace, stop: StopSignal) -> int:
    adopt_orphans()
    with closing(open_instruments(settings.home, args.slot)) as instruments:
        return _Program(settings, args, stop, instruments).run()


class _Program:
    """What stands between a started program and a queue process that works."""

    def __init__(
        self,
        settings: Settings,
        args: argparse.Namespace,
        stop: StopSignal,
        instruments: Instruments,
    ) -> None:
        self._settings = settings
        self._url = settings.database()
        self._app = load_app(settings.app)
        self._queues = _queues(settings, self._app, args.queue)
        self._slot: str = args.slot
        self._stop = stop
        self._instruments = instruments
        self._process: QueueProcess | None = None
        self._works: dict[str, PostgresWork] = {}

    def run(self) -> int:
        """Run to the end; return the exit code."""
        life = self._begin_life()
        if life is None:
            return exit_codes.OK
        who = identity()
        hand_down(EPOCH, life_mark(life.epoch, who.pid, who.pid_started))
        hand_down(QUEUE, _joined(self._queues))
        patience = Patience(self._settings.drain_seconds, self._settings.grace_seconds)
        self._process = QueueProcess(self._assignments(), self._outside(life), patience)
        return self._process.run()

    def _begin_life(self) -> Life | None:
        """Wait for the database, declare the application, register; None = stopped first."""
        failures = 0
        while not self._stop.requested:
            conn = wait_for_database(self._url, self._slot, self._stop)
            if conn is None:
                return None
            life = Life(self._url, self._registration(), self._fence, self._stop.fail)
            life.backend_pids = self._backend_pids
            try:
                with closing(conn):
                    usable = usable_connections(conn)
                    self._budget().check(usable)
                    declare(conn, self._app)
                    life.start()
                    self._tell_overdrawn(conn, usable)
            except ConfigurationError:
                raise
            except WeirkeeperError as error:
                life.stop()
                failures += 1
                log.warning("starting again: %s", error)
                self._stop.wait(jittered(RECONNECT.delay(failures)))
            else:
                return life
        return None

    def _tell_overdrawn(self, conn: Connection, usable: int) -> None:
        """Warn when all living processes, we among them, leave the application too little."""
        told = budget.overdrawn(needed_by_all(conn), usable)
        if told:
            log.warning("%s", told)

    def _assignments(self) -> list[Assignment]:
        kinds, declared = self._app.all_kinds.values(), self._app.environment
        return [
            Assignment(
                q,
                {k.name: k for k in kinds if k.queue == q.name},
                self._instruments,
                sealed={
                    k.name: sealed(k.name, environment_without_database(q.name, declared))
                    for k in kinds
                    if k.queue == q.name and not k.database
                },
            )
            for q in self._queues
        ]

    def _outside(self, life: Life) -> Outside:
        folder = self._settings.home / "run" / self._slot
        environment: dict[str, str] = {}
        for queue in self._queues:
            environment |= environment_of_children(queue.name, self._app.environment)
        return Outside(
            server=ForkServer(child_main, PRELOAD, folder, environment),
            open_work=lambda queue: self._open_work(queue, life.epoch),
            life=life,
            write_drain=lambda phases, jobs: self._write_drain(life.epoch, phases, jobs),
            stop=self._stop,
        )

    def _open_work(self, queue: str, epoch: int) -> PostgresWork:
        work = self._works[queue] = PostgresWork.open(self._url, Owner(self._slot, queue, epoch))
        return work

    def _write_drain(
        self, epoch: int, phases: Mapping[str, float], jobs: Mapping[str, int]
    ) -> None:
        with closing(connect(self._url, f"{self._slot} drain")) as conn:
            drained(conn, epoch, phases, jobs)

    def _fence(self) -> None:
        if self._process is not None:
            self._process.watchman.fence()

    def _registration(self) -> Registration:
        children = {queue.name: queue.children for queue in self._queues}
        connections = budget.parent(len(self._queues)) + sum(
            budget.sessions(queue, self._app.sessionless) for queue in self._queues
        )
        kinds = sorted(name for queue in self._queues for name in _kinds(self._app, queue.name))
        return Registration(
            "queue",
            self._slot,
            _joined(self._queues),
            version("weirkeeper"),
            connections,
            sum(children.values()),
            tuple(kinds),
            self._settings.generation,
            children if len(children) > 1 else None,
        )

    def _budget(self) -> budget.Budget:
        queues = self._settings.tuned(self._app.all_queues).values()
        shared = {budget.SHARED: len(self._queues) - 1}
        return budget.budget(queues, shared, self._app.sessionless)

    def _backend_pids(self) -> list[int]:
        """Server processes to end when this process is frozen: a frozen sleeper is expensive."""
        found = []
        for work in list(self._works.values()):
            with suppress(RuntimeError):
                found.append(work.sleeper)
        return found
