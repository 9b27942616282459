"""The program of one queue: builds the adapters and hands over. `python -P -m workers QUEUE`.

Stands before workers.queue_process. Waits for the database as long as it takes; refuses what
waiting cannot mend.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, redirect_stdout
from dataclasses import asdict
from importlib.metadata import version

from shared.app import App, load_app
from shared.backoff import RECONNECT, jittered
from shared.config import budget
from shared.config.command import Command
from shared.config.env import EPOCH, QUEUE, environment_of_children, hand_down
from shared.config.queues import Queue
from shared.config.settings import Settings
from shared.errors import ConfigurationError, WeirkeeperError
from shared.postgres.boot import wait_for_database
from shared.postgres.catalog import declare
from shared.postgres.connect import Connection, connect
from shared.postgres.drains import drained
from shared.postgres.life import Life
from shared.postgres.limits import usable_connections
from shared.postgres.processes import Registration, needed_by_all
from shared.postgres.work import Owner, PostgresWork
from shared.services import exit_codes
from shared.services.process import adopt_orphans, identity, life_mark
from shared.services.program import run
from shared.services.stop import StopSignal
from shared.telemetry.instruments import Instruments, open_instruments
from workers.assignment import Assignment
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
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument("--slot", help="name of this process; default: the queue's, with -")
    return run(parser, argv, _body, _check)


def _check(settings: Settings, args: argparse.Namespace) -> dict[str, object]:
    """Refuse what cannot work; tell the queue's numbers and kinds."""
    settings.database()
    app = load_app(settings.app)
    queue = _queue(settings, app, args.queue)
    args.slot = args.slot or queue.name.replace("_", "-")
    commands = _commands(app, queue)
    for what, command in commands.items():
        command.check_variables(what)
        if args.check:
            command.check_runs(what)
    if args.check:
        _check_handlers(queue.name)
    return {
        "slot": args.slot,
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


def _check_handlers(queue: str) -> None:
    """Import what the fork server will, as it does; this process ends after it."""
    with redirect_stdout(sys.stderr):  # what a check prints is JSON
        problem = load(queue).problem
    if problem:
        raise ConfigurationError(problem)


def _queue(settings: Settings, app: App, name: str) -> Queue:
    queues = settings.tuned(app.all_queues)
    if name not in queues:
        raise ConfigurationError.of(
            "queue", f"one of {', '.join(queues)}", name, "correct it or declare the queue"
        )
    return queues[name]


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
        self._queue = _queue(settings, self._app, args.queue)
        self._slot: str = args.slot
        self._stop = stop
        self._instruments = instruments
        self._process: QueueProcess | None = None
        self._work: PostgresWork | None = None

    def run(self) -> int:
        """Run to the end; return the exit code."""
        life = self._begin_life()
        if life is None:
            return exit_codes.OK
        who = identity()
        hand_down(EPOCH, life_mark(life.epoch, who.pid, who.pid_started))
        hand_down(QUEUE, self._queue.name)
        patience = Patience(self._settings.drain_seconds, self._settings.grace_seconds)
        self._process = QueueProcess(self._assignment(), self._outside(life), patience)
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

    def _assignment(self) -> Assignment:
        kinds = {name: self._app.all_kinds[name] for name in _kinds(self._app, self._queue.name)}
        return Assignment(self._queue, kinds, self._instruments)

    def _outside(self, life: Life) -> Outside:
        folder = self._settings.home / "run" / self._slot
        environment = environment_of_children(self._queue.name, self._app.environment)
        return Outside(
            server=ForkServer(child_main, PRELOAD, folder, environment),
            open_work=lambda: self._open_work(life.epoch),
            life=life,
            write_drain=lambda phases, jobs: self._write_drain(life.epoch, phases, jobs),
            stop=self._stop,
        )

    def _open_work(self, epoch: int) -> PostgresWork:
        self._work = PostgresWork.open(self._url, Owner(self._slot, self._queue.name, epoch))
        return self._work

    def _write_drain(
        self, epoch: int, phases: Mapping[str, float], jobs: Mapping[str, int]
    ) -> None:
        with closing(connect(self._url, f"{self._slot} drain")) as conn:
            drained(conn, epoch, phases, jobs)

    def _fence(self) -> None:
        if self._process is not None:
            self._process.watchman.fence()

    def _registration(self) -> Registration:
        children = self._queue.children
        connections = budget.PARENT + children
        kinds = tuple(sorted(_kinds(self._app, self._queue.name)))
        return Registration(
            "queue",
            self._slot,
            self._queue.name,
            version("weirkeeper"),
            connections,
            children,
            kinds,
            self._settings.generation,
        )

    def _budget(self) -> budget.Budget:
        return budget.budget(self._settings.tuned(self._app.all_queues).values())

    def _backend_pids(self) -> list[int]:
        """Server processes to end when this process is frozen: a frozen sleeper is expensive."""
        try:
            return [] if self._work is None else [self._work.sleeper]
        except RuntimeError:
            return []
