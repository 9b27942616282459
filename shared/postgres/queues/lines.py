"""ADAPTER: claims that keep limits: the cap of a queue, the rate of a kind, the turns of owners.

Before this: shared.postgres.queues.work, for a queue process. Beneath it:
shared.postgres.queues.claims, which takes jobs from lanes. A queue without limits is claimed from
as if this were not there. Limits are read from the database, as every process of the queue sees
them, whatever its application says.

Limits cost those alone who have them: where nothing of a limited kind was found a moment ago, what
is found of others is handed out without another look. Only who found nothing at all looks at
everything, so that "empty" means the same as without limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shared.backoff import random_token
from shared.clock import SYSTEM, Clock
from shared.jobs.work import Claim, Cut
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.queues.claims import Claims, Lanes, behind
from shared.postgres.queues.floors import Lane

MOMENT = 0.05  # seconds for which a limited kind is taken to have nothing in line


class Lines:
    """Claims for one queue and one epoch.

    Attributes:
        cut: which limits kept the last claim from more.
    """

    def __init__(self, conn: Connection, queue: str, epoch: int, clock: Clock = SYSTEM) -> None:
        self._conn = conn
        self._clock = clock
        self._owner = (queue, epoch)
        self._queue = queue
        self._capped = False
        self._rated: dict[str, Turns] = {}
        self._open = Turns(conn, self._owner, clock, floors=True)
        self._closed: dict[str, float] = {}  # kinds without room: when the next may start
        self._quiet: dict[str, float] = {}  # kinds of which nothing was found: when to look again
        self._last: str | None = None  # the group that was served last; None: kinds without a rate
        self.cut = Cut()
        self.learn()

    def learn(self) -> bool:
        """Read the limits anew; whether shared.postgres.queues.moved may have something to do."""
        params = {"queue": self._queue, "epoch": self._owner[1]}
        with translated():
            row: Any = self._conn.execute(statement("claims/limits"), params).fetchone()
        capped, rated, fair, astray = row or (False, (), (), True)
        if capped != self._capped:
            self._capped = capped
            self._open = Turns(self._conn, self._owner, self._clock, floors=not capped)
        self._rated = {
            kind: self._rated.get(kind) or Turns(self._conn, self._owner, self._clock, floors=False)
            for kind in rated
        }
        for turns in (self._open, *self._rated.values()):
            turns.fair = frozenset(fair)
        self._closed.clear()  # a rate that was raised is open sooner
        return bool(astray)

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` jobs; see shared.postgres.queues.claims.Claims.claim.

        Returns:
            The claims; empty only when a sweep found nothing that the limits leave, or where the
            cut says that it is unfinished.
        """
        self.cut = Cut()
        rated = [kind for kind in kinds if kind in self._rated]
        if not rated and not self._capped:
            return self._from(self._open, kinds, limit)
        now = self._clock.monotonic()
        # What has opened is asked for anew; a cap may keep it from that, and is no reason to hurry.
        self._closed = {name: opens for name, opens in self._closed.items() if opens > now}
        quiet = [kind for kind in rated if self._quiet.get(kind, 0.0) > now]
        rest = [kind for kind in kinds if kind not in self._rated]
        got: list[Claim] = []
        for kind in behind([*rated, None], self._last):
            names = rest if kind is None else (kind,)
            if kind not in quiet and names and len(got) < limit:
                more = self._within(kind, names, limit - len(got))
                self._last = kind if more else self._last
                got += more
        for kind in quiet:
            if not got:
                got = self._within(kind, (kind,), limit)
        self._note()
        return got

    def tidy(self) -> None:
        """After a claim; see shared.postgres.queues.claims.Claims.tidy."""
        self._open.tidy()

    def _within(self, kind: str | None, names: Sequence[str], limit: int) -> list[Claim]:
        """Claim under the locks on what is limited."""
        if kind is None and not self._capped:
            return self._from(self._open, names, limit)
        if kind is not None and self._closed.get(kind, 0.0) > self._clock.monotonic():
            return []
        with translated(), self._conn.transaction():
            room = left = min(limit, self._cap_room(limit))
            if kind is not None and room > 0:
                left = self._rate_room(kind, limit)
                room = min(room, left)
            if room < 1:
                return []
            turns = self._open if kind is None else self._rated[kind]
            got = self._from(turns, names, room)
            if kind is not None and got:
                params = {"kind": kind, "n": len(got)}
                self._conn.execute(statement("claims/rate_spend"), params)
        if kind is not None:
            found = got or turns.unfinished
            self._quiet[kind] = 0.0 if found else self._clock.monotonic() + MOMENT
            if len(got) == left:  # there may be more: the next look tells until when it waits
                self._closed[kind] = self._clock.monotonic()
        return got

    def _from(self, turns: Turns, names: Sequence[str], limit: int) -> list[Claim]:
        got = turns.claim(names, limit)
        self.cut = self.cut._replace(unfinished=self.cut.unfinished or turns.unfinished)
        return got

    def _cap_room(self, limit: int) -> int:
        if not self._capped:
            return limit
        row: Any = self._conn.execute(
            statement("claims/cap_room"), {"queue": self._queue}
        ).fetchone()
        room = limit if row[0] is None else int(row[0])
        self.cut = self.cut._replace(capped=self.cut.capped or room < limit)
        return room

    def _rate_room(self, kind: str, limit: int) -> int:
        row: Any = self._conn.execute(statement("claims/rate_room"), {"kind": kind}).fetchone()
        room, opens = row
        if room is None:
            return limit
        if room < 1:
            self._closed[kind] = self._clock.monotonic() + (opens or 0.0)
        return int(room)

    def _note(self) -> None:
        now = self._clock.monotonic()
        closed = {kind: at for kind, at in self._closed.items() if kind in self._rated}
        if closed:
            opens = max(0.0, min(closed.values()) - now)
            self.cut = self.cut._replace(opens=opens, kinds=tuple(sorted(closed)))


class Turns:
    """Claims of one group of kinds; owners take turns in those that are fair.

    Attributes:
        fair: names of the fair kinds.
    """

    def __init__(
        self, conn: Connection, owner: tuple[str, int], clock: Clock, *, floors: bool
    ) -> None:
        self._all = Claims(conn, *owner, clock, floors=floors)
        self._others = Claims(conn, *owner, clock, floors=floors)
        self._by_owner = OwnersClaims(conn, *owner, clock)
        self._clock = clock
        self._turn = 0
        self._quiet = 0.0  # nothing of fair kinds was found: when to look again
        self.fair: frozenset[str] = frozenset()

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` jobs; empty only when a sweep found nothing, or unfinished."""
        for claims in (self._all, self._others, self._by_owner):
            claims.unfinished = False
        fair = [kind for kind in kinds if kind in self.fair]
        if not fair:
            return self._all.claim(kinds, limit)
        others = [kind for kind in kinds if kind not in self.fair]
        quiet = self._quiet > self._clock.monotonic()
        self._turn += 1
        got: list[Claim] = []
        if self._turn % 2 or quiet:
            got += self._others.claim(others, limit)
        if quiet and got:
            return got
        if len(got) == limit:
            return got
        more = self._by_owner.claim(fair, limit - len(got))
        # The rest: other kinds, and what came in line before its kind was fair.
        more += self._all.claim(kinds, limit - len(got) - len(more))
        found = any(claim.kind in self.fair for claim in more)
        self._quiet = 0.0 if found else self._clock.monotonic() + MOMENT
        return got + more

    @property
    def unfinished(self) -> bool:
        """Whether the last claim gave up looking on behind jobs that had to be parked."""
        return any(c.unfinished for c in (self._all, self._others, self._by_owner))

    def tidy(self) -> None:
        """After a claim: raise the floors, if it is time."""
        self._all.tidy()
        self._others.tidy()


class OwnersClaims(Claims):
    """Claims of fair kinds: within a lane, owners take turns."""

    def __init__(self, conn: Connection, queue: str, epoch: int, clock: Clock = SYSTEM) -> None:
        super().__init__(conn, queue, epoch, clock, floors=False)
        self._fair = conn.cursor(binary=True)
        self._served: dict[Lane, str] = {}  # the owner whose turn was the last

    def _take(self, lanes: Lanes, limit: int) -> tuple[list[Claim], Sequence[int], Sequence[int]]:
        token = random_token()
        params = {
            "queue": self._queue,
            "kinds": lanes.kinds,
            "priorities": lanes.priorities,
            "after": [self._served.get(lane, "") for lane in lanes.each],
            "limit": limit,
            "epoch": self._epoch,
            "token": token,
        }
        with translated():
            row: Any = self._fair.execute(statement("claims/claim_fair"), params).fetchone()
        self._served.update(
            (lane, last) for lane, last in zip(lanes.each, row[13], strict=True) if last is not None
        )
        return self._read(row, token, lanes), row[11] or (), row[12] or ()
