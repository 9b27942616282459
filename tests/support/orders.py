"""Orders: plays the steps of concurrent transactions one by one, in a given order, on real sessions.

Each session makes two steps: its act in an open transaction, then the commit. A step that waits for
another session (a lock, or an act that looks again after a pause) is noticed and left waiting; what
comes next goes on, and the session's own next step follows when it is through. One whose act the
server ended (a deadlock, a key that was taken meanwhile) acts again when all others are through, as
callers do.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

from shared.errors import WeirkeeperError
from shared.postgres.driver.connect import Connection, Use, connect

Act = Callable[[Connection], Any]
ACT, COMMIT = "act", "commit"
STUCK = 30.0  # seconds after which an order is given up
GLANCE = 0.002  # seconds that a step may take before it is looked at
WAITS = (
    "select pg_blocking_pids(a.pid) <> '{}' or a.wait_event = 'PgSleep' from pg_stat_activity a"
    " where a.pid = %s"
)


def orders(sessions: int) -> Iterator[tuple[int, ...]]:
    """Every order of two steps of each session: 6 for two sessions.

    Of three, two commits side by side come in one order only: nothing happens between them. So
    there are 36, not 90.
    """
    every = sorted(set(permutations([n for n in range(sessions) for _ in (ACT, COMMIT)])))
    yield from (order for order in every if sessions == 2 or not _swapped(order))


def _swapped(order: tuple[int, ...]) -> bool:
    commits = [number in order[:place] for place, number in enumerate(order)]
    return any(
        commits[n] and commits[n + 1] and order[n] > order[n + 1] for n in range(len(order) - 1)
    )


class Session:
    """One connection with a thread that makes its steps."""

    def __init__(self, url: str, name: str) -> None:
        self.conn = connect(url, name, Use.HOT)
        self.pid = self.conn.info.backend_pid
        self._steps: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._loop, name=name)
        self._thread.start()
        self.begin(lambda _: None)

    def begin(self, act: Act) -> None:
        """A new act; nothing is done yet."""
        self.act = act
        self.todo = [ACT, COMMIT]
        self.due = 0  # how many of these were called for
        self.result: Any = None
        self.ended_by: WeirkeeperError | None = None
        self.broken: BaseException | None = None

    def idle(self, seconds: float = 0) -> bool:
        """Whether no step is under way."""
        return self._idle.wait(seconds)

    def go(self) -> None:
        """Make the next step, if one was called for and none is under way."""
        while self.due and self.todo and self.idle():
            self.due -= 1
            step = self.todo.pop(0)
            self._idle.clear()
            self._steps.put(self._act if step == ACT else self._commit)
            self.idle(GLANCE)

    def close(self) -> None:
        self._steps.put(None)
        self._thread.join(STUCK)
        self.conn.close()

    def _loop(self) -> None:
        while (step := self._steps.get()) is not None:
            try:
                step()
            except BaseException as error:  # noqa: BLE001  (told by the test's own thread)
                self.broken = error
            self._idle.set()

    def _act(self) -> None:
        self.conn.execute("begin")
        try:
            self.result = self.act(self.conn)
        except WeirkeeperError as error:
            self.ended_by = error
            self.conn.execute("rollback")

    def _commit(self) -> None:
        self.conn.execute("commit" if self.ended_by is None else "select")


class Stage:
    """Sessions and one that looks at them.

    Attributes:
        ended: how many acts the server has ended so far, by SQLSTATE.
    """

    def __init__(self, url: str, sessions: int) -> None:
        self.looks = connect(url, "looks")
        self.sessions = [Session(url, f"session {n}") for n in range(sessions)]
        self.ended: dict[str, int] = {}

    def play(self, acts: Sequence[Act], order: Sequence[int]) -> list[Any]:
        """Play acts, one a session, in an order of their steps; what each answered.

        Raises:
            AssertionError: the sessions wait for each other and nobody ends it.
        """
        cast = self.sessions[: len(acts)]
        for session, act in zip(cast, acts, strict=True):
            session.begin(act)
        deadline = time.monotonic() + STUCK
        for number in order:
            cast[number].due += 1
            self._settle(cast, deadline)
        while not all(session.idle() and not session.todo for session in cast):
            self._settle(cast, deadline)
        self._again(cast)
        for session in cast:
            if session.broken is not None:
                raise session.broken
        return [session.result for session in cast]

    def _settle(self, cast: Sequence[Session], deadline: float) -> None:
        """Let everybody go on until each stands still or waits for another."""
        moving = True
        while moving:
            assert time.monotonic() < deadline, "they wait for each other"
            for session in cast:
                session.go()
            moving = any(
                not session.idle(GLANCE) and not self._waits(session) for session in cast
            ) or any(session.idle() and session.due and session.todo for session in cast)

    def _waits(self, session: Session) -> bool:
        row = self.looks.execute(WAITS, (session.pid,)).fetchone()
        return bool(row and row[0])

    def _again(self, cast: Sequence[Session]) -> None:
        for session in cast:
            if (error := session.ended_by) is None:
                continue
            assert error.transient, error
            state = getattr(error, "sqlstate", None) or "?"
            self.ended[state] = self.ended.get(state, 0) + 1
            session.begin(session.act)
            session.due = 2
            while session.todo or not session.idle(STUCK):
                session.go()
            assert session.ended_by is None, session.ended_by

    def close(self) -> None:
        for session in self.sessions:
            session.close()
        self.looks.close()
