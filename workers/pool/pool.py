"""The pool: a bounded number of children, their deadlines, their deaths.

Its loop never waits for a database, so a job that passes its timeout is killed on time whatever
Postgres does. Before this: the executor gives it jobs. After it: each is accounted for
(workers.pool.accounts), whatever became of the child. Runs in the main thread alone (children die
with the thread that started their server); only `kill_now` may be called from another. Must never
know what a job does.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import inf

from shared.clock import SYSTEM, Clock
from shared.errors import ConfigurationError
from workers.pool import ends
from workers.pool.accounts import Accounts, Client
from workers.pool.channel import Inbox, MessageTooLong, open_pair
from workers.pool.chunk import Job
from workers.pool.forkserver import ForkServer, SpawnFailed, server_is_gone
from workers.pool.limits import Limits
from workers.pool.messages import Done, Hello, Outcome, Reply
from workers.pool.meters import PoolMeters
from workers.pool.respawn import Respawn
from workers.pool.slot import STALL, Slot, State
from workers.pool.tree import Orphans
from workers.pool.watch import MEMORY, Watch

BOOT = 10.0  # seconds that a child may take to say hello
LEAVE = 1.0  # seconds that a child told to quit, or whose pipe closed, may take to be gone
REAP = 2.0  # seconds that the fork server may take to tell of a killed child
REPORT = 0.1  # seconds between two writings of the gauges
LATE = 0.1  # seconds after which what a child has not begun is taken back, though it goes on
UNBEGUN = 1.0  # seconds that a child may take to begin anything; its siblings get it all then
FROZEN = 10.0  # seconds that a child may be silent with nothing to do

log = logging.getLogger(__name__)


class Pool:
    """Children and what they run.

    Args:
        server: where children come from.
        limits: how many, how patient.
        client: told what becomes of each job.
        meters: what is counted.
        clock: for deadlines.
    """

    def __init__(
        self,
        server: ForkServer,
        limits: Limits,
        client: Client,
        meters: PoolMeters,
        clock: Clock = SYSTEM,
    ) -> None:
        self._server = server
        self._size = limits.size
        self._grace = limits.grace
        self._recycle = limits.recycle
        self._watch = Watch(limits.allowed)
        self._accounts = Accounts(client, clock)
        self._meters = meters
        self._clock = clock
        self._selector = selectors.DefaultSelector()
        self._inbox = Inbox()
        self._slots: set[Slot] = set()
        self._idle: list[Slot] = []
        self._orphans = Orphans()
        self._orphaned = False
        self._refilling = True
        self._started = 0
        self._respawn = Respawn(clock)
        self._report_at = 0.0

    @property
    def free(self) -> int:
        """Children that could take a job now. Readable from any thread."""
        return len(self._idle)

    @property
    def busy(self) -> int:
        """Children that hold jobs."""
        return sum(slot.chunk is not None or slot.farewell is not None for slot in self._slots)

    @property
    def ready(self) -> int:
        """Children that have said hello and are not going."""
        return sum(slot.state in (State.IDLE, State.BUSY) for slot in self._slots)

    def watch(self, descriptor: int, ready: Callable[[], None]) -> None:
        """Have `ready` called in the loop whenever the descriptor can be read."""
        self._selector.register(descriptor, selectors.EVENT_READ, ready)

    def unwatch(self, descriptor: int) -> None:
        """Watch it no more."""
        self._selector.unregister(descriptor)

    def give(self, jobs: Sequence[Job]) -> None:
        """Hand jobs to a free child, to be run in order; each comes back by one call of the client.

        Raises:
            IndexError: no child is free.
        """
        while True:
            slot = self._idle.pop()
            try:
                slot.run(jobs, self._clock.monotonic())
            except MessageTooLong as error:
                self._idle.append(slot)
                if len(jobs) == 1:
                    self._accounts.refused(jobs[0], error)
                    return
                self._accounts.returned(jobs[1:])
                jobs = jobs[:1]
            except OSError:
                self._kill(slot, "protocol")
            else:
                return

    def turn(self, longest: float) -> None:
        """One turn of the loop: start what is missing, hear children, keep deadlines.

        Args:
            longest: seconds to wait at most.

        Raises:
            ConfigurationError: the children refuse to run at all.
            PoolBroken: none can be started.
        """
        self._refill()
        for key, _ in self._selector.select(self._patience(longest)):
            key.data()
        now = self._clock.monotonic()
        for slot in [s for s in self._slots if s.due <= now]:
            self._overdue(slot, now)
        if now >= self._report_at:
            self._report_at = now + REPORT
            self._meters.turned()
            self._meters.children(self.ready, self.busy, self._watch.most)
            self._accounts.progress(self._slots)
            for slot, reason in self._watch.look(self._slots, now):
                if reason == MEMORY:
                    self._kill(slot, reason)
                else:
                    slot.ask(reason, now + self._grace)
        if self._orphaned:
            self._sweep()

    def take_back(self) -> None:
        """Take back all jobs that no child has begun."""
        for slot in self._slots:
            if slot.state is State.BUSY:
                self._accounts.take_back(slot)

    def stop(self, job_id: int, reason: str) -> None:
        """Ask a job to stop; if "cancelled", its end comes when its child is gone. Harmless later.

        One that was not begun is returned, with all that wait behind the same job.
        """
        for slot in self._slots:
            if slot.state is State.BUSY and slot.chunk is not None and slot.chunk.holds(job_id):
                self._accounts.take_back(slot)
                job, _ = slot.runs()
                if job is not None and job.job_id == job_id:
                    slot.ask(reason, self._clock.monotonic() + self._grace)

    def interrupt(self) -> None:
        """Start no more children, send the free ones away, ask the busy ones to stop."""
        self._refilling = False
        self.take_back()
        now = self._clock.monotonic()
        for slot in self._slots:
            if slot.state is State.BUSY:
                if slot.runs()[0] is not None:
                    slot.ask("interrupted", now + self._grace)
                else:  # about to say that it is done
                    slot.quit(now + LEAVE)
        for slot in self._idle:
            slot.quit(now + LEAVE)
        self._idle.clear()

    def kill_now(self) -> None:
        """End every child at once, from any thread: the kernel does it when their server dies."""
        self._server.kill()

    def close(self) -> None:
        """Kill what is left, and wait until it is gone; harmless when repeated."""
        self._refilling = False
        self._idle.clear()
        for slot in self._slots:
            if slot.state is not State.KILLED:
                self._kill(slot, "stop")
        deadline = self._clock.monotonic() + REAP
        while self._slots and self._clock.monotonic() < deadline:
            for key, _ in self._selector.select(0.1):
                key.data()
        self._server.close()
        for slot in list(self._slots):
            self._bury(slot)
        self._sweep()
        self._meters.children(0, 0)

    def _refill(self) -> None:
        while self._refilling and len(self._slots) < self._size and self._respawn.allowed:
            self._spawn()

    def _spawn(self) -> None:
        parent, child = open_pair()
        self._started += 1
        try:
            process = self._server.spawn(f"child-{self._started}", child)
        except SpawnFailed as error:
            parent.close()
            log.warning("no child could be started: %s", error)
            self._respawn.boot_failed()
            return
        finally:
            child.close()
        now = self._clock.monotonic()
        slot = Slot(process, parent, now + BOOT)
        slot.wears(self._recycle, now)
        self._slots.add(slot)
        self._selector.register(parent, selectors.EVENT_READ, partial(self._hear, slot))
        self._selector.register(slot.sentinel, selectors.EVENT_READ, partial(self._bury, slot))
        self._meters.started("fill" if self._started <= self._size else "replace")

    def _hear(self, slot: Slot) -> bool:
        """Read one message, if there is one; more will make the descriptor ready again."""
        if slot.deaf or slot.state is State.GONE:
            return False
        try:
            reply = slot.receive(self._inbox)
        except BlockingIOError:
            return False
        except OSError:
            reply = None
        except ValueError as error:
            log.warning("child %d does not speak the protocol: %s", slot.pid, error)
            self._turn_deaf(slot, 0)
            return False
        if reply is None:  # end of file: the child is dying, or a handler closed the pipe
            self._turn_deaf(slot, LEAVE)
        else:
            self._take(slot, reply)
        return reply is not None

    def _take(self, slot: Slot, reply: Reply) -> None:
        if isinstance(reply, Hello):
            self._welcome(slot, reply)
            return
        chunk = slot.chunk
        if isinstance(reply, Outcome):
            over = chunk is not None and chunk.is_last(reply.index)
            answered = over or reply.index == slot.asked
            known = self._accounts.told(slot, reply)
        else:
            over = answered = True
            known = self._accounts.done(slot, reply)
        if not known:
            log.warning("child %d told of a job that it does not have", slot.pid)
            return
        self._respawn.worked()
        if over:
            slot.chunk = None
        if slot.state is State.BUSY and over:
            self._rest(slot)
        elif slot.state is State.ASKED and answered:
            slot.quit(self._clock.monotonic() + LEAVE)

    def _rest(self, slot: Slot) -> None:
        """A child is between jobs: it is free, or has served long enough."""
        slot.become(State.IDLE)
        now = self._clock.monotonic()
        reason = slot.worn(now)
        if reason:
            self._meters.recycled(reason)
            slot.quit(now + LEAVE)
        else:
            self._idle.append(slot)

    def _turn_deaf(self, slot: Slot, patience: float) -> None:
        """Hear no more of a child; if it is not dead within `patience` seconds, it is killed."""
        slot.deaf = True
        due = self._clock.monotonic() + patience
        slot.due = due if slot.state is State.BUSY else min(slot.due, due)
        self._selector.unregister(slot.channel)

    def _welcome(self, slot: Slot, hello: Hello) -> None:
        if hello.refused and self._refilling:  # else nobody counts on it any more
            raise ConfigurationError(hello.refused)
        self._respawn.booted()
        slot.greeted = True
        if slot.state is State.BOOTING:
            slot.become(State.IDLE)
            if self._refilling:
                self._idle.append(slot)
            else:
                slot.quit(self._clock.monotonic() + LEAVE)

    def _overdue(self, slot: Slot, now: float) -> None:
        if slot.state is State.BUSY and not slot.deaf:
            self._look(slot, now)
        elif slot.state is State.KILLED:
            slot.due = inf
            if slot.dead():  # but nobody told us: the fork server hangs
                log.error("the fork server does not answer: killing it and all its children")
                self._server.kill()
        else:
            reason = {State.BOOTING: "boot", State.LEAVING: "leave"}.get(slot.state, "protocol")
            self._kill(slot, reason)

    def _look(self, slot: Slot, now: float) -> None:
        """Look how far a busy child is: nothing waits behind a job that stands still."""
        chunk, seen = slot.chunk, slot.running()
        while self._hear(slot):
            pass
        if slot.state is not State.BUSY or chunk is None or slot.chunk is not chunk:
            return
        self._accounts.passed(chunk, seen)
        if len(chunk) > 1 and slot.moved() and now < chunk.given + LATE:
            slot.due = now + STALL
            return
        self._accounts.take_back(slot, leave=int(now < chunk.given + UNBEGUN))
        job, began = slot.runs()
        if job is None:  # about to say that it is done, or it has not even begun
            slot.due = now + STALL
            if now >= began + FROZEN:
                self._kill(slot, "protocol")
        elif now < began + job.timeout:
            slot.due = began + job.timeout
        else:
            slot.ask("timeout", now + self._grace)

    def _kill(self, slot: Slot, reason: str) -> None:
        if slot.kill(reason, self._clock.monotonic() + REAP):
            self._meters.killed(slot.reason)

    def _bury(self, slot: Slot) -> None:
        """A child is dead: hear its last words, end its job, clear up."""
        if slot.state is State.GONE:
            return
        lost = server_is_gone(slot.sentinel)
        code = slot.process.exitcode
        if code is None:
            return
        if lost:
            slot.destroy()
            slot.dead(REAP)
        self._last_words(slot)
        expected = slot.state in (State.LEAVING, State.KILLED, State.ASKED)
        if not slot.deaf:
            self._selector.unregister(slot.channel)
        self._selector.unregister(slot.sentinel)
        with suppress(ValueError):
            self._idle.remove(slot)
        self._slots.discard(slot)
        slot.become(State.GONE)
        spoilt = self._watch.out_of_memory(slot, code)
        self._accounts.died(slot, ends.Death(code, lost, spoilt))
        self._meters.ended("lost" if lost else ends.cause_of_death(code, slot.reason))
        slot.close()
        self._orphaned = True
        if not slot.greeted and self._refilling:
            self._respawn.boot_failed()
        elif not expected:
            self._respawn.died()

    def _last_words(self, slot: Slot) -> None:
        """What was sent before death counts: the pipe is emptied before the child is judged."""
        with suppress(OSError, ValueError):
            while not slot.deaf and slot.greeted:
                reply = slot.receive(self._inbox)
                if isinstance(reply, Outcome):
                    self._accounts.told(slot, reply)
                elif isinstance(reply, Done):
                    self._accounts.done(slot, reply)
                else:
                    return

    def _sweep(self) -> None:
        server = self._server.pid
        self._orphaned = self._orphans.sweep(own={server} if server else set())

    def _patience(self, longest: float) -> float:
        now = self._clock.monotonic()
        due = min((slot.due for slot in self._slots), default=inf)
        due = min(due, max(self._watch.due, self._report_at))
        if self._refilling and len(self._slots) < self._size:
            due = min(due, self._respawn.at)
        if self._orphaned:
            due = min(due, now + 0.02)
        return max(0.0, min(longest, due - now))
