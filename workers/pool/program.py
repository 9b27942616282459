"""One foreign program as its parent sees it: its pipes, its state, its job, its deadline.

Stands between `programs`, which decides, and the operating system. Its states and moves are those
of any child (workers.pool.slot). Never blocks: what the program does not read waits here, what it
writes is read in small pieces.
"""

from __future__ import annotations

import os
import resource
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from math import inf
from typing import Any

from shared.config.command import Command
from shared.jobs.failures import clean
from workers.pool.chunk import End, Job
from workers.pool.launcher import Started
from workers.pool.lines import Lines, Message, order_run, order_stop, read
from workers.pool.slot import MOVES, State
from workers.pool.tree import kill_tree
from workers.pool.usage import Usage, usage
from workers.pool.watch import CPU, SAMPLE, Allowed, beyond
from workers.pool.wear import Recycle, Wear

ANSWER_BYTES = 16 * 1024  # read at once: a flood of lines delays no other child
OUTPUT_BYTES = 4 * 1024  # read at once: each line of it is a line in the log
MOST_OUTPUT = 64 * 1024  # bytes that a dead program's output is read to
KEPT_OUTPUT = 4 * 1024  # bytes of its end that are told when a job fails
_STACK_SIGNALS = (signal.SIGUSR1, signal.SIGUSR2)


class Program:
    """One program.

    Attributes:
        command: what it was started with.
        lasting: it runs one job after another; else it was started for the one that it has.
        due: moment (monotonic) at which it must be looked at again.
        reason: why it was asked or killed: timeout, interrupted, cancelled, boot, protocol, leave,
            stop.
        fault: how it broke the protocol.
        job: what it runs, or is to run once it has said hello.
        farewell: how its job ended, told once the program is gone.
        deaf: nothing more is heard from it; its death is awaited.
    """

    def __init__(self, started: Started, command: Command, due: float, *, lasting: bool) -> None:
        process = started.process
        self.command = command
        self.process = process
        self.pid: int = process.pid
        self.sentinel: int = process.sentinel
        self.pipes = started.pipes
        self.lasting = lasting
        self.state = State.BOOTING
        self.due = due
        self.reason = self.fault = ""
        self.job: Job | None = None
        self.farewell: End | None = None
        self.started = 0.0
        self.started_at = 0.0  # seconds since 1970
        self.greeted = self.deaf = False
        self._lines = Lines()
        self._stack_signal = 0
        self._unsent = b""
        self._output = b""
        self._usage: Usage | None = None
        self._cpu = 0.0  # seconds, when its job began
        self._rss = 0.0  # MiB, when its job began
        self._files: tuple[int, int] | None = None  # its bounds of open files, while lowered
        self._sampled_at = 0.0
        self._allowed: Allowed | None = None
        self._jobs = 0
        self._base = 0.0  # MiB, when it said hello
        self._wear = Wear(Recycle(), 0.0)
        self._pidfd = _pidfd(self.pid)

    def become(self, state: State, due: float = inf) -> None:
        """Change state.

        Raises:
            RuntimeError: not a legal move.
        """
        if state not in MOVES[self.state]:
            raise RuntimeError(f"program {self.pid}: {self.state.value} → {state.value}")
        self.state = state
        self.due = due

    def take(self, job: Job, now: float, wall: float) -> None:
        """Have a job, to be begun when the program is ready."""
        self.job, self.started, self.started_at = job, now, wall

    def greet(self, stacks: int, recycle: Recycle, now: float) -> None:
        """It has said hello; `stacks` is a signal that it understands."""
        self.greeted = True
        self._wear = Wear(recycle, now)
        used = usage(self.pid)
        self._base = used.rss if used else 0.0
        self._stack_signal = stacks if stacks in _STACK_SIGNALS else 0

    def begin(self, job: Job, now: float, allowed: Allowed | None = None) -> None:
        """Hand the job over: its time runs from now.

        Args:
            job: that it has.
            now: monotonic.
            allowed: what the job may use; None = anything.
        """
        self._jobs += 1
        self._sampled_at, self._usage = now, usage(self.pid)
        if self._usage is not None:
            self._cpu, self._rss = self._usage.cpu, self._usage.rss
        self._allowed = allowed
        self._bound(None if allowed is None else allowed.open_files)
        self.become(State.BUSY, now + job.timeout)
        self._send(order_run(job.line))

    def sample(self, now: float) -> str:
        """Look what it has used; of what its job uses more than it may, "" = of nothing."""
        self._sampled_at = now
        self._look()
        return beyond(self._allowed, self)

    @property
    def look_at(self) -> float:
        """When what it uses is to be looked at again, for the job that it runs."""
        return self._sampled_at + SAMPLE if self.state is State.BUSY else inf

    @property
    def grown(self) -> float:
        """MiB by which it had grown since its job began, when it was looked at last."""
        return 0.0 if self._usage is None else self._usage.rss - self._rss

    @property
    def cpu_spent(self) -> float:
        """CPU time (s) that its job had used when it was looked at last."""
        return 0.0 if self._usage is None else max(0.0, self._usage.cpu - self._cpu)

    def worn(self, now: float) -> str:
        """Why it has served long enough; "" = it has not."""
        used = usage(self.pid)
        return self._wear.reason(self._jobs, used.rss - self._base if used else 0.0, now)

    def ask(self, reason: str, due: float) -> None:
        """Note where the job stands, then ask it to stop: by a line, and by SIGTERM."""
        self.reason = reason
        self._look()
        if self.job is not None and not self.dead():
            if self._stack_signal:
                self._signal(self._stack_signal)
            self._send(order_stop(str(self.job.job_id), "timeout" if reason == CPU else reason))
            self._signal(signal.SIGTERM)
        self.become(State.ASKED, due)

    def leave(self, due: float) -> None:
        """Tell it to leave: its standard input ends."""
        self.pipes.close_orders()
        self.become(State.LEAVING, due)

    def kill(self, reason: str, due: float) -> None:
        """SIGKILL the program and all that it started."""
        self.reason = self.reason or reason
        self._look()
        self.destroy()
        self.become(State.KILLED, due)

    def destroy(self) -> None:
        """SIGKILL to the whole tree, if the program is not dead already."""
        if not self.dead():
            kill_tree(self.pid)

    def dead(self, seconds: float = 0) -> bool:
        """Whether it is dead, reaped or not; waits at most `seconds` for it."""
        return self._pidfd < 0 or bool(select.select([self._pidfd], [], [], seconds)[0])

    def hear(self) -> Iterator[Message] | None:
        """The messages of one read, maybe none; None = it closed its end.

        Raises:
            BlockingIOError: nothing is there.
            ProtocolError: while the messages are read: it does not speak the protocol.
        """
        data = os.read(self.pipes.answers, ANSWER_BYTES)
        return (read(line) for line in self._lines.feed(data)) if data else None

    def output(self) -> list[str] | None:
        """Lines of its output, of one read; None = no process holds its end any more.

        Raises:
            BlockingIOError: nothing is there.
        """
        data = os.read(self.pipes.output, OUTPUT_BYTES)
        if not data:
            return None
        self._output = (self._output + data)[-KEPT_OUTPUT:]
        return [clean(line) for line in data.decode("utf-8", "replace").splitlines() if line]

    def unsent(self) -> bool:
        """Whether something waits until the program reads."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Write what it takes; a program that closed its input will be told from its death."""
        while self._unsent and self.pipes.orders >= 0:
            try:
                self._unsent = self._unsent[os.write(self.pipes.orders, self._unsent) :]
            except BlockingIOError:
                return
            except OSError:
                self._unsent = b""

    def evidence(self) -> dict[str, Any]:
        """What is known of it: memory and CPU time when it was stopped, the end of its output."""
        found: dict[str, Any] = {}
        if self._usage is not None:
            found["cpu_seconds"] = round(self.cpu_spent, 2)
            found["max_rss_mib"] = round(self._usage.peak, 1)
        if self._output:
            found["output"] = clean(self._output.decode("utf-8", "replace"))
        return found

    def forget(self) -> None:
        """The next job's evidence begins anew."""
        self._output = b""

    def close(self) -> None:
        """Give back what belongs to a dead program."""
        self.pipes.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
        self._pidfd = -1
        self.process.join()
        self.process.close()

    def _look(self) -> None:
        self._usage = usage(self.pid) or self._usage

    def _bound(self, open_files: int | None) -> None:
        """Bound its descriptors for one job; only the soft bound, which can be lifted again."""
        if open_files is None and self._files is None:
            return
        with suppress(OSError):  # it is dead, or has become another user
            before = self._files or resource.prlimit(self.pid, resource.RLIMIT_NOFILE)
            lowered = (min(open_files or before[0], before[1]), before[1])
            resource.prlimit(self.pid, resource.RLIMIT_NOFILE, lowered)
            self._files = None if open_files is None else before

    def _send(self, line: bytes) -> None:
        self._unsent += line
        self.flush()

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1
