"""The order in which jobs run: by priority, then by their place; scheduled ones by their time.

Of a fair kind, the place of a lane's first job is its owner's whose turn is next.

Entries are left in place when a job moves and are recognised as stale when they come up, so that a
cancel or a retry costs nothing here.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count

from shared.memory.rows import READY, SCHEDULED, Row


class Line:
    """Jobs that wait."""

    def __init__(self) -> None:
        self._seq = count(1)
        self._ready: list[tuple[int, int, Row]] = []
        self._scheduled: list[tuple[datetime, int, Row]] = []
        self._turns: dict[tuple[str, int], dict[str, deque[tuple[int, Row]]]] = {}

    def join(self, row: Row, now: datetime) -> None:
        """Put a job at the end of its priority."""
        row.where, row.seq, row.ready_at = READY, next(self._seq), now
        heapq.heappush(self._ready, (row.priority, row.seq, row))
        if row.kind.fair:
            owners = self._turns.setdefault(_lane(row), {})
            owners.setdefault(_owner(row), deque()).append((row.seq, row))

    def schedule(self, row: Row, due: datetime, why: str) -> None:
        """Let a job wait for its time."""
        row.where, row.seq, row.due, row.why = SCHEDULED, next(self._seq), due, why
        heapq.heappush(self._scheduled, (due, row.seq, row))

    def promote(self, now: datetime) -> None:
        """Put jobs in line whose time has come."""
        while self._scheduled and self._scheduled[0][0] <= now:
            _, seq, row = heapq.heappop(self._scheduled)
            if row.where == SCHEDULED and row.seq == seq:
                self.join(row, now)

    def next_due(self) -> datetime | None:
        """When the next scheduled job may run."""
        while self._scheduled:
            due, seq, row = self._scheduled[0]
            if row.where == SCHEDULED and row.seq == seq:
                return due
            heapq.heappop(self._scheduled)
        return None

    def ahead(self, row: Row, skipped: Callable[[Row], bool]) -> int:
        """How many stand before a job, but for those that are skipped and other owners of its lane.

        Args:
            row: the job, in line.
            skipped: whether another one starts nothing now.
        """
        place = (row.priority, row.seq)
        return sum(
            other.where == READY
            and (priority, seq) < place
            and other.seq == seq
            and not skipped(other)
            and not (row.kind.fair and _lane(other) == _lane(row) and _owner(other) != _owner(row))
            for priority, seq, other in self._ready
        )

    def take(self, may: Callable[[Row], bool]) -> Row | None:
        """The first job that may run, taken out; those before it keep their places."""
        aside: list[tuple[int, int, Row]] = []
        tried: set[tuple[str, int]] = set()
        try:
            for entry in self._standing():
                aside.append(entry)  # first, so that it keeps its place when `may` raises
                row = entry[2]
                if not row.kind.fair:
                    if may(row):
                        return aside.pop()[2]
                elif _lane(row) not in tried:
                    tried.add(_lane(row))
                    if (found := self._by_turns(_lane(row), may)) is not None:
                        return found  # its own entry is stale from now on
            return None
        finally:
            for entry in aside:
                heapq.heappush(self._ready, entry)

    def _by_turns(self, lane: tuple[str, int], may: Callable[[Row], bool]) -> Row | None:
        """The first job that may run of the owner whose turn it is; that owner is the last then."""
        owners = self._turns[lane]
        for owner in list(owners):
            line = deque(e for e in owners[owner] if e[1].where == READY and e[1].seq == e[0])
            owners[owner] = line
            for place, (_, row) in enumerate(line):
                if may(row):
                    del line[place], owners[owner]
                    if line:
                        owners[owner] = line
                    return row
            if not line:
                del owners[owner]
        return None

    def _standing(self) -> Iterator[tuple[int, int, Row]]:
        while self._ready:
            entry = heapq.heappop(self._ready)
            if entry[2].where == READY and entry[2].seq == entry[1]:
                yield entry


def _lane(row: Row) -> tuple[str, int]:
    return row.kind.name, row.priority


def _owner(row: Row) -> str:
    return row.opts.owner_id or ""
