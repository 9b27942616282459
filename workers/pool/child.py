"""The child's side of the pool: one process that runs one job at a time, as it is told.

Before this: the fork server forked it. It says hello, then hands each job of an order to the
`Attempt` that it was given, and sends back what it has to tell. Must never know a handler, and
never outlive its parent or fork server.
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
from functools import partial
from types import FrameType
from typing import Any, Protocol

from msgspec import Raw

from shared.clock import SYSTEM, cpu_seconds
from shared.jobs.failures import clean, stack
from shared.services.process import adopt_orphans, die_with_parent
from shared.services.service import ServiceThread
from workers.pool.channel import Inbox, send
from workers.pool.forkserver import leave_server
from workers.pool.messages import (
    Done,
    Hello,
    Order,
    Outcome,
    Quit,
    decode_job,
    decode_order,
    encode_reply,
)
from workers.pool.progress import Progress
from workers.pool.usage import own_peak

ASK = signal.SIGUSR1  # stop the running job
STACK = signal.SIGUSR2  # write the Python stack to the memory file
_NOT_FOR_US = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_BADLY = ("failed", "stopped")

Attempt = Callable[[dict[str, Any]], Outcome]


class Stopped(KeyboardInterrupt):
    """Raised inside a handler that was asked to stop: its time is up, or the process drains.

    A KeyboardInterrupt, because only for that does psycopg cancel the running query and keep the
    connection usable.
    """


class Word(Protocol):
    """What parent and child know of the job that runs, by its number."""

    def asked(self, number: int) -> bool:
        """Whether it was asked to stop."""
        ...

    def tell(self, number: int, n: float, of: float | None) -> None:
        """Say how far it is."""
        ...


class Interruption:
    """Raises Stopped in the main thread when asked, but only in the job that was named.

    A child is asked at most once: its parent replaces it afterwards, whatever it answers.

    Attributes:
        gently: stops the job in another way (a coroutine is cancelled); whether it could.
    """

    def __init__(self, progress: Word) -> None:
        self._progress = progress
        self._number = 0  # of the job that runs, or ran last
        self._running = False
        self.gently: Callable[[], bool] = lambda: False

    @property
    def asked(self) -> bool:
        """Whether the running job was asked to stop. From any thread."""
        return self._progress.asked(self._number)

    def install(self) -> None:
        """Take the signal; call from the main thread."""
        signal.signal(ASK, self.handle)

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        """A job is asked to stop, by a signal: raise Stopped, if it is the one that runs."""
        if self._running and self.asked:
            self._running = False
            if not self.gently():
                raise Stopped

    def report(self, n: float, of: float | None) -> None:
        """Tell the parent how far the running job is. From any thread."""
        self._progress.tell(self._number, n, of)

    def guard(self, attempt: Attempt, number: int, job: dict[str, Any]) -> Outcome:
        """Run an attempt; an interrupted one becomes the outcome "stopped"."""
        self._number = number
        try:
            self._running = True
            try:
                if self.asked:  # before it began
                    raise Stopped
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
    progress = Progress.create()
    interruption = Interruption(progress)
    interruption.install()
    files = [_stack_file(), progress.memory, progress.permits]
    spare = ServiceThread("spare", _idle, lambda _: None)
    spare.start()
    try:
        attempt = prepare(interruption)
    except Exception as error:  # noqa: BLE001  (whatever it is, the parent must be told)
        refusal = Hello(refused=str(error) or repr(error))
        socket.send_fds(channel, [encode_reply(refusal)], files)
        return
    socket.send_fds(channel, [encode_reply(Hello())], files)
    inbox = Inbox()
    while (message := inbox.receive(channel)) is not None:
        order = decode_order(message)
        if isinstance(order, Quit):
            return
        _run(channel, progress, order, partial(_attempt, interruption, attempt))


def _run(
    channel: socket.socket,
    progress: Progress,
    order: Order,
    attempt: Callable[[int, Raw], Outcome],
) -> None:
    """Run what an order holds, as far as it is not taken back.

    An outcome is in the pipe before the word moves on: whoever reads the pipe to its end, and then
    the word, knows how each job before the word has ended.
    """
    ended, told = 0, False
    since = 0.0
    cpu = cpu_seconds()
    progress.begins(cpu)
    for job in order.jobs:
        number = order.first + ended
        began = progress.move(number)
        if not progress.begin():
            told = False
            break
        since = since or began
        outcome = attempt(number, job)
        progress.weigh(began)
        told = not outcome.plain
        if told:
            now = SYSTEM.monotonic()
            outcome.index, outcome.seconds, since = ended, now - began, now
            if outcome.outcome in _BADLY:
                outcome.used = (cpu_seconds() - cpu, own_peak())
            send(channel, encode_reply(outcome))
        ended += 1
    now = progress.move(order.first + ended)
    if not told:
        send(channel, encode_reply(Done(ended, now - since if since else 0.0)))


def _attempt(interruption: Interruption, attempt: Attempt, number: int, line: Raw) -> Outcome:
    try:
        job = decode_job(line)
    except (ValueError, RecursionError) as error:
        return Outcome("discarded", error=clean(f"args that Python cannot read: {error}"))
    return interruption.guard(attempt, number, job)


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
