"""One child as its parent sees it: its state, its job, its deadline.

Stands between the pool, which decides, and the operating system. States and the legal moves
between them are in MOVES; `Slot.become` is the one way to change state. Never blocks.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from math import inf
from typing import Any

from shared.jobs.failures import clean
from shared.services.process import signal_main_thread
from workers.pool.channel import Inbox, send
from workers.pool.child import ASK, STACK
from workers.pool.messages import QUIT, Hello, Outcome, decode_reply, encode_run
from workers.pool.tree import kill_tree, usage

_MAX_STACKS = 8 * 1024  # bytes of the stack dump that are kept


class State(Enum):
    """Where a child is in its life."""

    BOOTING = "booting"  # started, has not said hello
    IDLE = "idle"
    BUSY = "busy"
    ASKED = "asked"  # its job was asked to stop; the child is replaced afterwards
    LEAVING = "leaving"  # told to quit, or its job is over after being asked
    KILLED = "killed"
    GONE = "gone"


MOVES = {
    State.BOOTING: {State.IDLE, State.LEAVING, State.KILLED, State.GONE},
    State.IDLE: {State.BUSY, State.LEAVING, State.KILLED, State.GONE},
    State.BUSY: {State.IDLE, State.ASKED, State.KILLED, State.GONE},
    State.ASKED: {State.LEAVING, State.KILLED, State.GONE},
    State.LEAVING: {State.KILLED, State.GONE},
    State.KILLED: {State.GONE},
    State.GONE: set(),
}


@dataclass(frozen=True, slots=True)
class Job:
    """What the pool must know of a job: `key` names it, `line` is handed to the child."""

    key: int
    line: bytes
    timeout: float


@dataclass(frozen=True, slots=True)
class End:
    """How a job ended in the pool.

    Attributes:
        outcome: completed, failed, snoozed, discarded (the child's word), timeout, interrupted,
            cancelled, crashed, or lost (the whole pool died with its fork server).
        result: JSON text.
        delay: seconds of a snooze, or in place of the kind's backoff.
        seconds: that it ran.
    """

    key: int
    outcome: str
    started_at: datetime
    seconds: float
    result: str | None = None
    error: str | None = None
    cause: str | None = None
    delay: float | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)


class Slot:
    """One child.

    Attributes:
        due: moment (monotonic) at which the pool must look at it again.
        reason: why it was asked or killed: timeout, interrupted, cancelled, boot, protocol, stop.
        farewell: how its job ended, told once the child is gone.
        greeted: the child has said hello.
        deaf: the child closed its end of the pipe; its death is awaited.
    """

    def __init__(self, process: Any, channel: socket.socket, due: float) -> None:
        self.process = process
        self.pid: int = process.pid
        self.sentinel: int = process.sentinel
        self.channel = channel
        self.state = State.BOOTING
        self.due = due
        self.reason = ""
        self.job: Job | None = None
        self.farewell: End | None = None
        self.started = 0.0
        self.started_at: datetime | None = None
        self.greeted = False
        self.deaf = False
        self._stacks = -1
        self._stack_from = 0
        self._usage: dict[str, float] = {}
        self._pidfd = _pidfd(self.pid)

    def become(self, state: State, due: float = inf) -> None:
        """Change state.

        Raises:
            RuntimeError: not a legal move.
        """
        if state not in MOVES[self.state]:
            raise RuntimeError(f"child {self.pid}: {self.state.value} → {state.value}")
        self.state = state
        self.due = due

    def run(self, job: Job, now: float, wall: datetime) -> None:
        """Hand over a job.

        Raises:
            MessageTooLong: nothing was handed over.
            OSError: the child is going or gone.
        """
        send(self.channel, encode_run([job.line]))
        self.job, self.started, self.started_at = job, now, wall
        self.become(State.BUSY, now + job.timeout)

    def receive(self, inbox: Inbox) -> Hello | Outcome | None:
        """The next message; None = the child closed its end.

        Raises:
            BlockingIOError: nothing is there.
            ValueError: it does not speak the protocol.
        """
        if not self.greeted:
            return self._first_word()
        message = inbox.receive(self.channel)
        return None if message is None else decode_reply(message)

    def _first_word(self) -> Hello | Outcome | None:
        message, files, _, _ = socket.recv_fds(self.channel, 64 * 1024, 4)
        if files:
            self._stacks = files[0]
        return decode_reply(message) if message else None

    def ask(self, reason: str, due: float) -> None:
        """Note where the job stands, then ask it to stop."""
        self.reason = reason
        self._usage = usage(self.pid)
        if not self.dead():
            self._dump_stacks()
            with suppress(ProcessLookupError):
                signal_main_thread(self.pid, ASK)
        self.become(State.ASKED, due)

    def quit(self, due: float) -> None:
        """Tell an idle child to leave."""
        with suppress(OSError):
            send(self.channel, QUIT)
        self.become(State.LEAVING, due)

    def kill(self, reason: str, due: float) -> None:
        """SIGKILL the child and all that it started."""
        self.reason = self.reason or reason
        self.destroy()
        self.become(State.KILLED, due)

    def destroy(self) -> None:
        """SIGKILL to the whole tree, if the child is not dead already."""
        if not self.dead():
            kill_tree(self.pid)

    def _dump_stacks(self) -> None:
        """Have the child write its stacks, in whatever thread still takes signals."""
        if self._stacks >= 0:
            self._stack_from = os.fstat(self._stacks).st_size
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, STACK)

    def dead(self, seconds: float = 0) -> bool:
        """Whether the child is dead, reaped or not; waits at most `seconds` for it."""
        return self._pidfd < 0 or bool(select.select([self._pidfd], [], [], seconds)[0])

    def evidence(self) -> dict[str, Any]:
        """What was seen of a child when it was asked to stop: its stacks, memory, CPU time."""
        found: dict[str, Any] = dict(self._usage)
        if self._stacks >= 0 and self._usage:
            dump = os.pread(self._stacks, _MAX_STACKS, self._stack_from)
            if dump:
                found["stacks"] = clean(dump.decode("utf-8", "replace"))
        return found

    def close(self) -> None:
        """Give back what belongs to a dead child."""
        self.channel.close()
        for descriptor in (self._stacks, self._pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self._stacks = self._pidfd = -1
        self.process.join()
        self.process.close()


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1
