"""How a foreign program becomes a child: forked by the fork server, cut loose, executed.

Before this: the pool asked the fork server for it. After it: the program speaks the open child
protocol (docs/child_protocol.md). From the fork server and not from the queue process, which has
threads; so the kernel ends it with the server, and its death is told like any other child's.
Must never leave it a descriptor, a signal setting or a variable that it was not promised.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from multiprocess.connection import Connection

from shared.config.command import Command
from shared.services.process import adopt_orphans, die_with_parent, forbid_new_privileges
from workers.pool.forkserver import ForkServer, leave_server

CANNOT_EXECUTE = 127  # exit code, as of a shell
ANSWERS = 3  # the descriptor of the program's lines
_FREE = 10  # descriptors from here on are in nobody's way


@dataclass(slots=True)
class Pipes:
    """Our ends of a program's pipes, none of which blocks."""

    orders: int  # its standard input
    answers: int  # its descriptor 3
    output: int  # its standard output and error

    @classmethod
    def open(cls) -> tuple[Self, list[Connection]]:
        """Ours, and those of the program in the order that `launch` takes."""
        orders, answers, output = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
        ours = cls(orders[1], answers[0], output[0])
        for descriptor in (ours.orders, ours.answers, ours.output):
            os.set_blocking(descriptor, False)
        theirs = [
            Connection(orders[0], writable=False),
            Connection(answers[1], readable=False),
            Connection(output[1], readable=False),
        ]
        return ours, theirs

    def close(self) -> None:
        """Close all that are open."""
        self.close_orders()
        os.close(self.answers)
        os.close(self.output)

    def close_orders(self) -> None:
        """Close its standard input: it is to leave. Harmless when repeated."""
        if self.orders >= 0:
            os.close(self.orders)
            self.orders = -1


class Started(NamedTuple):
    """A program that was started: its multiprocess.Process, and our ends of its pipes."""

    process: Any
    pipes: Pipes


def start(server: ForkServer, name: str, command: Command, *, new_privileges: bool) -> Started:
    """Start a program.

    Args:
        server: forks it.
        name: for the process table, until it is executed.
        command: the program, found in PATH of its environment, its arguments and variables.
        new_privileges: it may gain rights (setuid, setgid).

    Raises:
        SpawnFailed: the server ended meanwhile.
    """
    ours, theirs = Pipes.open()
    try:
        process = server.start(
            name, launch, (theirs, command, command.full_environment(), new_privileges)
        )
    except BaseException:
        ours.close()
        raise
    finally:
        for end in theirs:
            end.close()
    return Started(process, ours)


def launch(
    pipes: Sequence[Connection],
    command: Command,
    environment: dict[str, str],
    new_privileges: bool,
    server: int,
) -> None:
    """Become the program; runs in a child of the fork server, and does not return.

    Args:
        pipes: the program's ends: standard input, descriptor 3, standard output and error.
        command: what to execute.
        environment: all of it.
        new_privileges: it may gain rights.
        server: process id of the fork server, which must still be the parent.
    """
    die_with_parent(signal.SIGKILL, parent=server)
    leave_server()
    adopt_orphans()  # kept by exec: what the program starts is found below it
    if not new_privileges:
        forbid_new_privileges()
    os.setsid()
    os.chdir("/")
    _as_new(*(end.fileno() for end in pipes))
    try:
        os.execvpe(command.argv[0], command.argv, environment)
    except (OSError, ValueError) as error:
        why = f"{command.argv[0]} cannot be executed: {error}"
        os.write(ANSWERS, json.dumps({"type": "hello", "refused": why}).encode() + b"\n")
    os._exit(CANNOT_EXECUTE)


def _as_new(orders: int, answers: int, output: int) -> None:
    """Descriptors and signals as a program expects them when it begins."""
    moved = [_out_of_the_way(descriptor) for descriptor in (orders, answers, output)]
    os.dup2(moved[0], 0)
    os.dup2(moved[2], 1)
    os.dup2(moved[2], 2)
    os.dup2(moved[1], ANSWERS)
    os.closerange(ANSWERS + 1, os.sysconf("SC_OPEN_MAX"))
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _out_of_the_way(descriptor: int) -> int:
    """Copy a descriptor to a number that none of the four is copied over."""
    copies = []
    while (copy := os.dup(descriptor)) < _FREE:
        copies.append(copy)
    return copy
