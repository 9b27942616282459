"""The child's side of the pool: one process that runs one job at a time, as it is told.

Before this: the fork server forked it. It says hello, then for each order hands the job to the
`Attempt` that it was given, and sends back the outcome. Must never know a handler, and never
outlive its parent or fork server.
"""

from __future__ import annotations

import faulthandler
import gc
import io
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from shared.jobs.failures import clean, stack
from shared.services.process import adopt_orphans, die_with_parent
from shared.services.service import ServiceThread
from workers.pool.channel import Inbox, send
from workers.pool.forkserver import leave_server
from workers.pool.messages import Hello, Outcome, decode_order, encode_reply

ASK = signal.SIGUSR1  # stop the running job
STACK = signal.SIGUSR2  # write the Python stack to the memory file
_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

Attempt = Callable[[dict[str, Any]], Outcome]


class Stopped(KeyboardInterrupt):
    """Raised inside a handler that was asked to stop: its time is up, or the process drains.

    A KeyboardInterrupt, because only for that does psycopg cancel the running query and keep the
    connection usable.
    """


class Interruption:
    """Raises Stopped in the main thread when asked, but only while a job runs.

    A child is asked at most once: its parent replaces it afterwards, whatever it answers.
    """

    def __init__(self) -> None:
        self.asked = False
        self._running = False

    def install(self) -> None:
        """Take the signal; call from the main thread."""
        signal.signal(ASK, self._handle)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if self._running:
            self._running = False
            raise Stopped

    def guard(self, attempt: Attempt, job: dict[str, Any]) -> Outcome:
        """Run an attempt; an interrupted one becomes the outcome "stopped"."""
        try:
            self._running = True
            try:
                return attempt(job)
            finally:
                self._running = False
        except Stopped as stopped:
            return Outcome("stopped", stack=stack(stopped))


def serve(
    channel: socket.socket,
    server: int,
    prepare: Callable[[Interruption], Attempt],
) -> None:
    """Be a child until told to quit, or until the parent is gone.

    Args:
        channel: this child's end of its pipe.
        server: process id of the fork server, which must still be the parent.
        prepare: builds what runs a job; what it raises refuses the whole pool.
    """
    _isolate(server)
    interruption = Interruption()
    interruption.install()
    stacks = _stack_file()
    spare = ServiceThread("spare", _idle, lambda _: None)
    spare.start()
    try:
        attempt = prepare(interruption)
    except Exception as error:  # noqa: BLE001  (whatever it is, the parent must be told)
        socket.send_fds(channel, [encode_reply(Hello(refused=str(error) or repr(error)))], [stacks])
        return
    socket.send_fds(channel, [encode_reply(Hello())], [stacks])
    _loop(channel, interruption, attempt)


def _loop(channel: socket.socket, interruption: Interruption, attempt: Attempt) -> None:
    inbox = Inbox()
    while (message := inbox.receive(channel)) is not None:
        try:
            jobs = decode_order(message)
        except (ValueError, RecursionError) as error:
            unreadable = f"args that Python cannot read: {error}"
            send(channel, encode_reply(Outcome("discarded", error=clean(unreadable))))
            continue
        if jobs is None:
            return
        for index, job in enumerate(jobs):
            outcome = interruption.guard(attempt, job)
            outcome.index = index
            send(channel, encode_reply(outcome))


def _isolate(server: int) -> None:
    """Cut what ties this process to others, and tie it to its parent's life."""
    die_with_parent(signal.SIGKILL, parent=server)
    leave_server()
    adopt_orphans()
    # Signals to the whole group are the parent's affair. A function instead of SIG_IGN, which
    # programs that a handler starts would inherit.
    for number in _NOT_FOR_US:
        signal.signal(number, _ignore)
    # What a handler prints must not be lost with the child that is killed a moment later.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    gc.enable()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing."""


def _stack_file() -> int:
    """A memory file that the STACK signal writes all Python stacks to, even from inside C.

    The spare thread takes the signal when the handler's thread has masked it.
    """
    memory = os.memfd_create("stacks")
    faulthandler.register(STACK, file=memory, all_threads=True)
    return memory


def _idle(stop: threading.Event) -> None:
    stop.wait()
