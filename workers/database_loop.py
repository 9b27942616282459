"""The database's loop: everything that a queue process says to Postgres but its beat.

One thread of its own, so that nothing here can ever delay a deadline or a kill. Before this: the
completer's ends, the producer's looks, the upkeep's timers. Sessions that end are opened again as
often as it takes; what is pending waits.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from shared.backoff import RECONNECT, jittered
from shared.errors import DatabaseUnavailable, WeirkeeperError
from shared.jobs.work import CANCEL, Claim, Work
from workers.assignment import Assignment
from workers.completer import Completer
from workers.executor import Executor
from workers.producer import Producer
from workers.upkeep import Upkeep

# Seconds. A thread that wakes while another holds the interpreter has to be woken twice: after a
# notice this one counts and judges once the other loop has handed the job to a child.
BREATH = 0.001

log = logging.getLogger(__name__)


class Wake:
    """Wakes the loop from any thread, cheaply when it is awake already."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._set = False

    def __call__(self) -> None:
        """Wake the loop."""
        if not self._set:
            self._set = True
            os.eventfd_write(self._fd, 1)

    def fileno(self) -> int:
        """Readable when the loop is to wake."""
        return self._fd

    def clear(self) -> None:
        """Take the wake, then look at everything: what is set from now on wakes again.

        In this order: the other way round, a wake in between would be read away and yet leave the
        flag set, and no later one would ever be written.
        """
        with suppress(BlockingIOError):
            os.eventfd_read(self._fd)
        self._set = False


@dataclass(frozen=True, slots=True)
class Parts:
    """What the loop joins."""

    executor: Executor
    producer: Producer
    completer: Completer
    upkeep: Upkeep


class DatabaseLoop:
    """Claims, finishes and keeps up, until told to stop.

    Args:
        assignment: what this process is there for.
        open_work: opens the sessions.
        parts: what it joins.
        wake: of this loop.
        on_turn: called each turn, and each time that it waits for the database.
    """

    def __init__(
        self,
        assignment: Assignment,
        open_work: Callable[[], Work],
        parts: Parts,
        wake: Wake,
        on_turn: Callable[[], None],
    ) -> None:
        self._instruments = assignment.instruments
        self._on_turn = on_turn
        self._open_work = open_work
        self._executor = parts.executor
        self._producer = parts.producer
        self._completer = parts.completer
        self._upkeep = parts.upkeep
        self._holdings = parts.upkeep.holdings
        self._wake = wake
        self._returns: list[Claim] = []
        self._actions: deque[Callable[[], None]] = deque()
        self._connected = threading.Event()
        self._failures = 0
        self._claiming = False

    @property
    def connected(self) -> bool:
        """Whether the sessions stand, as far as is known."""
        return self._connected.is_set()

    @property
    def settled(self) -> bool:
        """Whether nothing is left to be written, or still comes: a claim may be under way.

        In this order: what is claimed waits in the executor before the claim is over.
        """
        coming = self._claiming or self._executor.waiting
        owed = self._completer.pending or self._holdings.owes
        return not (coming or self._returns or owed)

    def hand_back(self, claims: Sequence[Claim]) -> None:
        """Have claims given back that no child has begun. From any thread."""
        self._returns.extend(claims)
        self._wake()

    def soon(self, action: Callable[[], None]) -> None:
        """Have something said to the database in this thread, once it can be. From any thread."""
        self._actions.append(action)
        self._wake()

    def run(self, stop: threading.Event) -> None:
        """Be the loop."""
        while not stop.is_set():
            self._turned()
            try:
                work = self._open_work()
            except WeirkeeperError as error:
                self._pause(error, stop)
                continue
            try:
                self._connect(work)
                self._turns(work, stop)
            except WeirkeeperError as error:
                self._pause(error, stop)
            finally:
                self._connected.clear()
                work.close()

    def _connect(self, work: Work) -> None:
        self._instruments.db_connects_total.inc(2)
        self._upkeep.connected(work)
        self._producer.connected()
        self._connected.set()

    def _turns(self, work: Work, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                self._turn(work)
                self._failures = 0
            except DatabaseUnavailable as error:
                if not work.connected:
                    raise
                self._pause(error, stop)  # a deadlock, a lock timeout: the session still stands

    def _turn(self, work: Work) -> None:
        self._turned()
        if self._completer.due_in() == 0:
            self._flush(work)
        self._give_back(work)
        while self._actions:
            self._actions.popleft()()
        self._upkeep.turn(work)
        self._claim(work)
        self._rest(work)

    def _turned(self) -> None:
        self._instruments.turned("claims")
        self._on_turn()

    def _flush(self, work: Work) -> None:
        written = self._completer.flush(work)
        self._holdings.over(written.claims)
        for finish in written.finishes:
            if finish.delay == 0:
                self._producer.look("free")
            elif finish.delay is not None:
                self._upkeep.expect(finish.delay)
        self._producer.ended()

    def _give_back(self, work: Work) -> None:
        if self._returns:
            claims = list(self._returns)
            try:
                self._holdings.give_back(work, claims)  # it keeps what it cannot write now
            finally:
                del self._returns[: len(claims)]

    def _claim(self, work: Work, breath: float = 0.0) -> None:
        """Claim and hand over; then give the other loop a breath (s) to begin what came."""

        def hand_over(claims: list[Claim]) -> None:
            self._holdings.held.update({claim.job_id: claim for claim in claims})
            self._executor.put(claims)
            if breath:
                select.select([work.fileno(), self._wake.fileno()], [], [], breath)
                if self._completer.due_in() == 0:  # a caller waits for it
                    self._flush(work)

        self._claiming = True  # before the producer looks whether it is stopped
        try:
            self._producer.turn(work, self._executor.room(), hand_over)
        finally:
            self._claiming = False

    def _rest(self, work: Work) -> None:
        due = self._completer.due_in()
        seconds = min(
            self._upkeep.waits(),
            self._producer.waits(self._executor.room()),
            60.0 if due is None else due,
        )
        ready, _, _ = select.select([work.fileno(), self._wake.fileno()], [], [], seconds)
        if self._wake.fileno() in ready:
            self._wake.clear()
        if work.fileno() in ready and self._heard(work.drain()):
            self._claim(work, BREATH)  # whatever else is due can wait

    def _heard(self, notices: Sequence[str]) -> bool:
        """Take notices in; whether there may be something to claim."""
        if CANCEL in notices:
            self._upkeep.cancel_soon()
        woken = any(notice != CANCEL for notice in notices)
        if woken:
            self._producer.look("wake")
        return woken

    def _pause(self, error: WeirkeeperError, stop: threading.Event) -> None:
        """Wait before trying again: 0.1 s doubling to 5 s; what is pending is kept."""
        self._failures += 1
        state = str(error).rpartition("(SQLSTATE ")[2][:2] if "(SQLSTATE " in str(error) else "08"
        self._instruments.db_errors_total.labels(state).inc()
        seconds = jittered(RECONNECT.delay(self._failures))
        log.warning(
            "the database fails, next try in %.1f s, %d ends are kept: %s",
            seconds, self._completer.pending, error,
        )  # fmt: skip
        stop.wait(seconds)
