"""One child as its parent sees it: its state, its jobs, its deadline.

Stands between the pool, which decides, and the operating system. States and the legal moves
between them are in MOVES; `Slot.become` is the one way to change state. Never blocks.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from math import inf
from typing import Any

from shared.jobs.failures import clean
from shared.services.process import signal_main_thread
from workers.pool.channel import Inbox, send
from workers.pool.child import ASK, STACK
from workers.pool.chunk import Chunk, End, Job
from workers.pool.messages import QUIT, Reply, decode_reply, encode_run
from workers.pool.progress import Progress
from workers.pool.tree import kill_tree
from workers.pool.usage import Usage, usage
from workers.pool.wear import Recycle, Wear

STALL = 0.02  # seconds that a word may stand still until what waits behind it is taken back
FILES = 3  # that travel with a hello: stacks, words, permits
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
    State.BUSY: {State.IDLE, State.ASKED, State.LEAVING, State.KILLED, State.GONE},
    State.ASKED: {State.LEAVING, State.KILLED, State.GONE},
    State.LEAVING: {State.KILLED, State.GONE},
    State.KILLED: {State.GONE},
    State.GONE: set(),
}


class Slot:
    """One child.

    Attributes:
        due: moment (monotonic) at which the pool must look at it again.
        reason: why it was asked or killed: timeout, interrupted, cancelled, boot, protocol, stop.
        chunk: the jobs that it holds; None = it has told of all that it was given.
        asked: place in the chunk of the job that was asked to stop.
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
        self.chunk: Chunk | None = None
        self.asked: int | None = None
        self.farewell: End | None = None
        self.greeted = False
        self.deaf = False
        self._progress: Progress | None = None
        self._number = 1  # of the next job
        self._seen = (0, 0.0)  # where its word stood when it was last looked at
        self._stacks = -1
        self._stack_from = 0
        self.sampled_at = -inf
        self._sample: tuple[int | None, Usage | None] = (None, None)  # place in the chunk, what
        self._noted = False  # its stacks are being written
        self._wear = Wear(Recycle(), 0.0)
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

    def run(self, jobs: Sequence[Job], now: float) -> None:
        """Hand over jobs, to be run in order.

        Raises:
            MessageTooLong: nothing was handed over.
            OSError: the child is going or gone.
        """
        progress, first = self._shared(), self._number
        # What a taking back gave again to a child that was done by then would count as one of
        # these, and a later taking back cut the job that runs.
        progress.take_back()
        progress.permit(len(jobs))
        try:
            send(self.channel, encode_run(first, [job.line for job in jobs]))
        except BaseException:
            progress.take_back()
            raise
        self._number += len(jobs) + 1
        self.chunk = Chunk(jobs, first, now)
        self._seen = progress.at()
        self.become(State.BUSY, now + min(STALL, jobs[0].timeout))

    def receive(self, inbox: Inbox) -> Reply | None:
        """The next message; None = the child closed its end.

        Raises:
            BlockingIOError: nothing is there.
            ValueError: it does not speak the protocol.
        """
        if not self.greeted:
            return self._first_word()
        message = inbox.receive(self.channel)
        return None if message is None else decode_reply(message)

    def _first_word(self) -> Reply | None:
        message, files, _, _ = socket.recv_fds(self.channel, 64 * 1024, FILES)
        if not message:
            return None
        if len(files) != FILES:
            raise ValueError(f"{len(files)} descriptors came with its hello; expected {FILES}")
        self._stacks = files[0]
        self._progress = Progress(*files[1:])
        return decode_reply(message)

    def moved(self) -> bool:
        """Whether the child's word has moved since this was last asked."""
        before, self._seen = self._seen, self._shared().at()
        return self._seen != before

    def running(self) -> tuple[int, float] | None:
        """Which job its word names (by place in the chunk), begun when; None = none was begun.

        All before it have ended. Read the pipe to its end first: what they told is in there.
        """
        number, began = self._shared().at()
        place = None if self.chunk is None else self.chunk.place(number)
        return None if place is None else (place, began)

    def runs(self) -> tuple[Job | None, float]:
        """The job that the child runs, and since when; no job, and since when there is none."""
        if self.chunk is None:
            return None, 0.0
        place, began = self.running() or (-1, self.chunk.given)
        return self.chunk.job(place), began

    def told(self, place: int) -> tuple[float, float | None] | None:
        """How far the job at a place of the chunk is, as its handler told last."""
        return None if self.chunk is None else self._shared().told(self.chunk.first + place)

    def progressed(self) -> tuple[int, float, float | None] | None:
        """(id, n, of) of the job that runs, if it told how far it is since this was last asked."""
        if self.chunk is None or self._progress is None or not self._progress.told_anew():
            return None
        place, _ = self.running() or (-1, 0.0)
        job, told = self.chunk.job(place), self.told(place)
        return None if job is None or told is None else (job.job_id, *told)

    def wears(self, recycle: Recycle, now: float) -> None:
        """Have it replaced some time."""
        self._wear = Wear(recycle, now)

    def worn(self, now: float) -> str:
        """Why it has served long enough; "" = it has not."""
        return self._wear.reason(self._number - 1, self._shared().growth, now)

    def sample(self, now: float) -> None:
        """Look what the child has used, for the job that it runs."""
        self.sampled_at = now
        running = self.running()
        self._sample = (None if running is None else running[0], usage(self.pid))

    @property
    def memory(self) -> float:
        """MiB that the child held when it was sampled last."""
        return 0.0 if self._sample[1] is None else self._sample[1].rss

    @property
    def grown(self) -> float:
        """MiB by which it had grown since its begin, when it was sampled last."""
        return self.memory - self._shared().base

    @property
    def cpu_spent(self) -> float:
        """CPU time (s) that its job had used when it was sampled last."""
        found = self._sample[1]
        return 0.0 if found is None else max(0.0, found.cpu - self._shared().cpu)

    def seen(self, place: int) -> dict[str, Any]:
        """Evidence on the job at a place: what it had used, how far it was."""
        found: dict[str, Any] = {}
        sampled, used = self._sample
        if used is not None and sampled == place:
            found |= {"cpu_seconds": round(self.cpu_spent, 2), "max_rss_mib": round(used.peak, 1)}
        told = self.told(place)
        if told is not None:
            found["progress"] = {"n": told[0], "of": told[1]}
        return found

    def take_back(self, leave: int = 0) -> list[Job]:
        """Take back what the child has not begun.

        Args:
            leave: so many of a chunk of which nothing was begun.
        """
        if self.chunk is None:
            return []
        progress = self._shared()
        left = progress.take_back()
        if left and left == len(self.chunk) and leave:
            progress.permit(leave)
            left -= leave
        return self.chunk.cut(left)

    def _shared(self) -> Progress:
        if self._progress is None:
            raise RuntimeError(f"child {self.pid}: no memory is shared before its hello")
        return self._progress

    def ask(self, reason: str, due: float) -> None:
        """Note where the job that runs stands, then ask it to stop."""
        self.reason = reason
        running = self.running()
        if self.chunk is not None and running is not None:
            self.asked = running[0]
            self._shared().ask(self.chunk.first + self.asked)
        self.sample(self.sampled_at)
        self._noted = True
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

    def kill(self, reason: str, due: float) -> bool:
        """SIGKILL the child and all that it started.

        Returns:
            Whether it lived. One that was dead already, only not reaped, died of itself.
        """
        alive = not self.dead()
        if alive:
            self.reason = self.reason or reason
            self.destroy()
        self.become(State.KILLED, due)
        return alive

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

    def stacks(self) -> dict[str, Any]:
        """Its Python stacks of when it was asked to stop."""
        if self._stacks < 0 or not self._noted:
            return {}
        dump = os.pread(self._stacks, _MAX_STACKS, self._stack_from)
        return {"stacks": clean(dump.decode("utf-8", "replace"))} if dump else {}

    def close(self) -> None:
        """Give back what belongs to a dead child."""
        self.channel.close()
        for descriptor in (self._stacks, self._pidfd):
            if descriptor >= 0:
                os.close(descriptor)
        self._stacks = self._pidfd = -1
        if self._progress is not None:
            self._progress.close()
            self._progress = None
        self.process.join()
        self.process.close()


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return -1
