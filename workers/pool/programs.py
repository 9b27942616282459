"""Children that are foreign programs: started, spoken with, timed, ended. Part of the pool.

Before this: the pool has a job whose kind names a command, or a queue that does. After it: one
`End` for each job, whatever the program said or did. As in the pool: nothing here ever waits, and
only the main thread calls it. Must never believe what a program says.
"""

from __future__ import annotations

import logging
import selectors
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import inf

from shared.clock import Clock
from shared.config.command import Command
from shared.errors import ConfigurationError
from shared.jobs.failures import clean
from workers.pool import program_ends
from workers.pool.accounts import Client
from workers.pool.chunk import End, Job
from workers.pool.ends import cause_of_death
from workers.pool.forkserver import ForkServer, SpawnFailed, server_is_gone
from workers.pool.launcher import start
from workers.pool.limits import Limits
from workers.pool.lines import Hello, Log, Message, Progress, ProtocolError, Told
from workers.pool.meters import PoolMeters
from workers.pool.program import Program
from workers.pool.respawn import Respawn
from workers.pool.slot import State
from workers.pool.watch import MEMORY
from workers.pool.wires import Wires, tell

BOOT = 30.0  # seconds until hello: it may import a whole application
LEAVE = 1.0  # seconds that one told to leave, or whose pipe closed, may take to be gone
REAP = 2.0  # seconds that the fork server may take to tell of a killed one

_EXPECTED = "expected a line of the child protocol"
_GOING = (State.LEAVING, State.KILLED, State.ASKED)

_LEVELS = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Around:
    """What the pool and its programs share.

    Attributes:
        server: where children come from.
        client: told of each job's end and progress.
        meters: what is counted.
        clock: for deadlines.
        limits: how patient, and when a lasting program is replaced.
        new_privileges: programs may gain rights.
    """

    server: ForkServer
    client: Client
    meters: PoolMeters
    clock: Clock
    limits: Limits
    new_privileges: bool


class Programs:
    """The programs of one pool.

    Args:
        around: what it shares with the pool.
        commands: of kinds: each of their jobs has a program of its own.
        lasting: of the queue, and how many of it there are to be; None = it names none.
    """

    def __init__(
        self,
        around: Around,
        commands: Mapping[str, Command],
        lasting: tuple[Command, int] | None = None,
    ) -> None:
        self._around = around
        self._clock = around.clock
        self._selector = selectors.DefaultSelector()
        self._meters = around.meters
        self._commands = commands
        self._lasting = lasting
        self._size = lasting[1] if lasting else 0
        self._all: dict[Program, Wires] = {}
        self._idle: list[Program] = []
        self._refilling = True
        self._started = 0
        self._respawn = Respawn(around.clock)

    def fileno(self) -> int:
        """Readable when `hear` has something to do."""
        return self._selector.fileno()

    def hear(self, seconds: float = 0) -> None:
        """Hear what programs say, write what they read, bury the dead; waits so long at most."""
        for key, _ in self._selector.select(seconds):
            key.data()

    def __len__(self) -> int:
        """How many programs live, or are not buried yet."""
        return len(self._all)

    @property
    def free(self) -> int:
        """Lasting programs that could take a job now. Readable from any thread."""
        return len(self._idle)

    @property
    def busy(self) -> int:
        """Programs that hold a job."""
        return sum(p.job is not None or p.farewell is not None for p in self._all)

    @property
    def ready(self) -> int:
        """Lasting programs that have said hello and are not going."""
        return sum(p.lasting and p.state in (State.IDLE, State.BUSY) for p in self._all)

    def ages(self) -> dict[int, float]:
        """Seconds that each job has been running, by its key."""
        now = self._clock.monotonic()
        return {p.job.job_id: now - p.started for p in self._all if p.job is not None}

    def run(self, job: Job) -> None:
        """Run a job: in a program that is free, or in its own; its end comes whatever happens.

        Raises:
            IndexError: it names no command of its own, and none is free.
        """
        now, wall = self._clock.monotonic(), self._clock.wall().timestamp()
        command = self._commands.get(job.kind)
        if command is None:
            program = self._idle.pop()
            program.forget()
            program.take(job, now, wall)
            self._begin(program, job)
            return
        try:
            program = self._start(command, lasting=False)
        except SpawnFailed as error:
            self._around.client.ended(
                End(job.job_id, "lost", wall, 0.0, error=str(error), cause="pool_lost")
            )
        else:
            program.take(job, now, wall)

    def turn(self) -> None:
        """Start what is missing, keep deadlines.

        Raises:
            ConfigurationError: the queue's command refuses to run at all.
            PoolBroken: it does not come up, however often it is tried.
        """
        while self._lasting and self._missing and self._respawn.allowed:
            self._refill(self._lasting[0])
        now = self._clock.monotonic()
        for program in [p for p in self._all if p.due <= now]:
            self._overdue(program)
        for program in self._all:
            if program.look_at <= now:
                self._look(program, now)

    def due(self) -> float:
        """Moment at which `turn` has something to do."""
        due = min((min(p.due, p.look_at) for p in self._all), default=inf)
        return min(due, self._respawn.at) if self._missing else due

    @property
    def _missing(self) -> bool:
        return self._refilling and sum(p.lasting for p in self._all) < self._size

    def stop(self, key: int, reason: str) -> None:
        """Ask a job to stop; its end comes when its program is gone."""
        for program in self._all:
            if program.job is not None and program.job.job_id == key:
                self._ask(program, reason)

    def interrupt(self) -> None:
        """Start no more, send the free ones away, ask the busy ones to stop."""
        self._refilling = False
        self._idle.clear()
        for program in self._all:
            if program.job is not None:
                self._ask(program, "interrupted")
            elif program.state in (State.IDLE, State.BOOTING):
                self._leave(program)

    def kill(self) -> None:
        """SIGKILL every program, and wait a moment for their ends; harmless when repeated."""
        self._refilling = False
        self._idle.clear()
        for program in self._all:
            if program.state is not State.KILLED:
                self._kill(program, "stop")
        deadline = self._clock.monotonic() + REAP
        while self._all and self._clock.monotonic() < deadline:
            self.hear(0.1)

    def close(self) -> None:
        """Take leave of those whose server is gone by now."""
        for program in list(self._all):
            self._bury(program)
        self._selector.close()

    # One program: start, hear, judge, bury.

    def _refill(self, command: Command) -> None:
        try:
            self._start(command, lasting=True)
        except SpawnFailed as error:
            log.warning("no program could be started: %s", error)
            self._respawn.boot_failed()

    def _start(self, command: Command, *, lasting: bool) -> Program:
        self._started += 1
        name, rights = f"program-{self._started}", self._around.new_privileges
        started = start(self._around.server, name, command, new_privileges=rights)
        program = Program(started, command, self._clock.monotonic() + BOOT, lasting=lasting)
        self._all[program] = wires = Wires(self._selector, program)
        wires.connect(partial(self._hear, program), partial(self._bury, program))
        first = lasting and self._started <= self._size
        self._meters.started("fill" if first else "replace" if lasting else "job")
        return program

    def _begin(self, program: Program, job: Job) -> None:
        program.begin(job, self._clock.monotonic(), self._around.limits.allowed.get(job.kind))
        self._all[program].sent()

    def _leave(self, program: Program) -> None:
        self._all[program].mute()
        program.leave(self._clock.monotonic() + LEAVE)

    def _hear(self, program: Program) -> None:
        """Take what one read gave."""
        if program.deaf or program.state is State.GONE:
            return
        try:
            messages = program.hear()
            if messages is None:
                self._turn_deaf(program, LEAVE)  # it is dying, or has closed the pipe
                return
            for message in messages:
                self._take(program, message)
        except BlockingIOError:
            return
        except ProtocolError as error:
            self._turn_deaf(program, 0, f"{_EXPECTED}; got {error}")

    def _turn_deaf(self, program: Program, patience: float, fault: str = "") -> None:
        """Hear no more of a program; if it is not dead within `patience` s, it is killed."""
        program.deaf = True
        if fault and program.state not in _GOING:
            program.fault = program.fault or fault
            log.warning("program %d: %s", program.pid, program.fault)
        program.due = min(program.due, self._clock.monotonic() + patience)
        with suppress(ValueError):
            self._idle.remove(program)
        self._all[program].deafen()

    def _take(self, program: Program, message: Message) -> None:
        if isinstance(message, Hello):
            self._welcome(program, message)
        elif not program.greeted:
            raise ProtocolError("a message before hello")
        elif isinstance(message, Log):
            tell(program, _LEVELS[message.level], clean(message.text))
        elif program.job is None or message.id != str(program.job.job_id):
            raise ProtocolError(f"a word about job {message.id}, which it does not have")
        elif isinstance(message, Progress):
            self._around.client.progressed(program.job.job_id, message.n, message.of)
        else:
            self._settle(program, program.job, message)

    def _welcome(self, program: Program, hello: Hello) -> None:
        if program.greeted:
            raise ProtocolError("a second hello")
        if hello.refused:
            if program.lasting and program.state is State.BOOTING:
                raise ConfigurationError(f"the command of the queue refuses: {hello.refused}")
            raise ProtocolError(f"a refusal: {hello.refused}")
        self._respawn.booted()
        program.greet(hello.stacks, self._around.limits.recycle, self._clock.monotonic())
        if program.state is not State.BOOTING:
            return
        program.become(State.IDLE)
        if program.job is not None:
            self._begin(program, program.job)
        elif self._refilling:
            self._idle.append(program)
        else:
            self._leave(program)

    def _settle(self, program: Program, job: Job, said: Told) -> None:
        self._all[program].catch_up()
        end = program_ends.told(program, job, said, self._clock.monotonic())
        program.job = None
        self._respawn.worked()
        if program.state is State.BUSY:
            program.become(State.IDLE)
        worn = program.lasting and program.worn(self._clock.monotonic())
        if program.state is State.IDLE and program.lasting and not program.deaf and not worn:
            self._idle.append(program)
        elif program.state in (State.IDLE, State.ASKED):
            self._leave(program)
        if end.outcome == "cancelled":  # whatever the job started goes with its program
            program.farewell = end
        else:
            self._around.client.ended(end)

    def _ask(self, program: Program, reason: str) -> None:
        now = self._clock.monotonic()
        if program.state is State.BUSY:
            program.ask(reason, now + self._around.limits.grace)
            self._all[program].sent()
        elif program.state is State.BOOTING:  # it has not begun: nothing to be gentle with
            self._kill(program, reason)

    def _look(self, program: Program, now: float) -> None:
        """See what a program uses; end its job if that is more than its kind may."""
        reason = program.sample(now)
        if reason == MEMORY:
            self._kill(program, reason)
        elif reason:
            self._ask(program, reason)

    def _overdue(self, program: Program) -> None:
        if program.state is State.BUSY and not program.deaf:
            self._ask(program, "timeout")
        elif program.state is State.KILLED:
            program.due = inf
            if program.dead():  # but nobody told us: the fork server hangs
                log.error("the fork server does not answer: killing it and all its children")
                self._around.server.kill()
        else:
            if program.state not in _GOING and not program.fault:
                program.fault = (
                    "closed descriptor 3 before an outcome"
                    if program.deaf
                    else f"said no hello within {BOOT:g} s"
                )
            reason = {State.BOOTING: "boot", State.LEAVING: "leave"}.get(program.state, "protocol")
            self._kill(program, reason)

    def _kill(self, program: Program, reason: str) -> None:
        program.kill(reason, self._clock.monotonic() + REAP)
        self._meters.killed(program.reason)

    def _bury(self, program: Program) -> None:
        """A program is dead: hear its last words, end its job, clear up."""
        if program.state is State.GONE:
            return
        lost = server_is_gone(program.sentinel)
        code = program.process.exitcode
        if code is None:
            return
        if lost:
            program.destroy()
            program.dead(REAP)
        self._last_words(program)
        job, program.job = program.job, None
        expected = program.state in _GOING and not program.fault
        self._all.pop(program).cut()
        with suppress(ValueError):
            self._idle.remove(program)
        program.become(State.GONE)
        end = program.farewell
        if job is not None:
            end = program_ends.died(program, job, code, self._clock.monotonic(), lost=lost)
        self._meters.ended("lost" if lost else cause_of_death(code, program.reason))
        program.close()
        if program.lasting:
            self._replace(program, expected=expected)
        if end is not None:
            self._around.client.ended(end)

    def _replace(self, program: Program, *, expected: bool) -> None:
        if not program.greeted and self._refilling:
            why = program.fault or "died before it said hello"
            log.warning("program %d, %s: %s", program.pid, program.command.argv[0], why)
            self._respawn.boot_failed()
        elif not expected:
            self._respawn.died()

    def _last_words(self, program: Program) -> None:
        """Lines written before death count: the pipe is emptied before it is judged."""
        try:
            while not program.deaf and (messages := program.hear()) is not None:
                for message in messages:
                    self._take(program, message)
        except BlockingIOError:
            return
        except ProtocolError as error:
            program.fault = program.fault or f"{_EXPECTED}; got {error}"
