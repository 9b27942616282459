"""ADAPTER: claiming jobs for one queue process.

Before this: `ready` rows that the enqueue path, the relay or a promotion placed. After it: the
producer hands the claims to its pool. A claim takes rows lane by lane (a lane is a kind and a
priority). While claims come back full, the next starts where the last one ended; a short one makes
the next sweep from the lanes' floors, which catches rows that committed late or came back. An
empty answer therefore means that a sweep found nothing. Where a line never ends, claims come back
full for hours: one sweeps now and then all the same, or what committed late would wait as long.

A job that is alone on an idle system waits for one claim, and a process that slept runs everything
cold: hence a statement without a cursor, lists that travel as text, and floors that are learned now
and then, after the claims were handed over.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import repeat
from math import inf
from typing import Any, NamedTuple, TypeVar

from psycopg import Error

from shared.backoff import random_token
from shared.clock import SYSTEM, Clock
from shared.jobs.work import Claim, Held, Mark
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translate, translated
from shared.postgres.driver.prepared import as_array, prepared
from shared.postgres.driver.statements import statement
from shared.postgres.queues.floors import Floors, Lane
from shared.postgres.queues.promotions import expire

PRIORITIES = (1, 2, 3, 4)
T = TypeVar("T")
_claim = partial(tuple.__new__, Claim)  # of a tuple, without a call of Python's for each
FULL_SWEEP = 60.0  # seconds between sweeps from the very beginning: the net under the floors
SWEEP_EVERY = 0.5  # seconds until a claim sweeps, although all before it came back full
LOOK_ON = 0.1  # seconds for which a claim looks on behind jobs that it had to park or discard
SWEEP_SHARE = 20  # times as long as a sweep took, at least: an open writer keeps floors down
LEARN_AT = 256  # claims, after which floors are to rise: so many dead rows are soon walked over
LESSONS = 3  # until they have: a number is read, noted, and passed by all who could be below it
LEARN_SOON = 0.1  # seconds between them
LEARN_LATE = 10.0  # seconds between them when there was little to learn; siblings claim as well


class Lanes(NamedTuple):
    """Lanes in the order in which they are claimed from; kinds and priorities as they travel."""

    each: Sequence[Lane]
    kinds: str
    priorities: str


class Claims:
    """Claims for one queue and one epoch, through one connection.

    Args:
        conn: of a hot session.
        queue: its name.
        epoch: of the process.
        clock: for the sweep from the beginning.
        floors: False = sweep from the beginning each time: for claims within longer transactions,
            in which a reply tells nothing of others' (shared.postgres.queues.floors), and in which
            keys are locked once, in order: such a claim does not look on behind what it parked.

    Attributes:
        unfinished: the last claim found nothing but jobs that had to be parked or had expired, and
            gave up looking on: whoever claims has other things to do, and some of them free keys.
    """

    def __init__(
        self,
        conn: Connection,
        queue: str,
        epoch: int,
        clock: Clock = SYSTEM,
        *,
        floors: bool = True,
    ) -> None:
        self._conn = conn
        self._queue = queue
        self._epoch = epoch
        self._clock = clock
        self._floors = Floors()
        self._learns = floors
        self._after: dict[Lane, int] = {}
        self._ahead = False  # the last claim was full: go on behind it
        self._went_on = False  # the last claim did not sweep
        self._sweep_at = -inf  # when one does that would go on
        self._last: dict[int, str] = {}  # by priority: the kind that was served last
        self._full_sweep_at = clock.monotonic() + FULL_SWEEP
        self._lanes: Lanes | None = None  # that were claimed from last
        self._unlearned = 0  # claims
        self._lessons = LESSONS
        self._learned = -inf  # when
        self._hot = prepared(conn, "claims/claim")
        self.unfinished = False

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` jobs of these kinds, by priority; kinds take turns in each.

        Turns begin behind the kind that was served last. A start that just moves on with each claim
        would serve the flood that stands behind many empty lanes as often as there are lanes.

        Returns:
            The claims; empty only when a sweep found nothing, or where it is unfinished.

        Raises:
            DatabaseUnavailable: the session is gone, or the reply was lost: reconnect, make a new
                Claims, and reconcile, for the claim may have been committed.
        """
        self.unfinished = False
        if not kinds or limit < 1:
            return []
        until = self._clock.monotonic() + LOOK_ON if self._learns else -inf
        lanes = lanes_of(tuple(kinds), tuple(map(self._last.get, PRIORITIES)))
        self._lanes = lanes
        while True:
            batch, expired, keyed = self._take(lanes, limit)
            live = self._admitted(self._without(batch, expired), keyed)
            if live or not (batch or self._went_on):
                return live
            if self._clock.monotonic() >= until:
                self.unfinished = True
                return []

    def give_back(self, claims: Sequence[Claim | Held]) -> int:
        """Return claims that were not started; how many were still ours."""
        if not claims:
            return 0
        with translated():
            row = self._conn.execute(
                statement("claims/give_back"),
                {
                    "job_ids": [c.job_id for c in claims],
                    "tokens": [c.token for c in claims],
                    "epoch": self._epoch,
                },
            ).fetchone()
        return int(str(row[0])) if row else 0

    def mark_started(self, claims: Sequence[Claim]) -> None:
        """Mark jobs that have run for a moment (a rescue then spends their attempt)."""
        if not claims:
            return
        with translated():
            self._conn.execute(
                statement("claims/mark_started"),
                {
                    "job_ids": [c.job_id for c in claims],
                    "tokens": [c.token for c in claims],
                    "epoch": self._epoch,
                },
            )

    def mark_progress(self, marks: Sequence[Mark]) -> None:
        """Keep how far jobs are, as far as they are still ours."""
        if not marks:
            return
        with translated():
            self._conn.execute(
                statement("claims/mark_progress"),
                {
                    "job_ids": [mark.job_id for mark in marks],
                    "tokens": [mark.token for mark in marks],
                    "progress": [json.dumps(asdict(mark.progress)) for mark in marks],
                    "epoch": self._epoch,
                },
            )

    def held(self) -> list[Held]:
        """What the database thinks this epoch holds of this queue."""
        with translated():
            params = {"epoch": self._epoch, "queue": self._queue}
            rows = self._conn.execute(statement("claims/held"), params).fetchall()
        return [Held(int(str(j)), int(str(t)), float(str(a))) for j, t, a in rows]

    def retake(self, claims: Sequence[Claim]) -> set[int]:
        """Hold jobs again whose claims a crash of the server has lost, under the same tokens.

        Returns:
            Ids of those that still waited as before the claim, and whose concurrency key has a
            place for them. The others are somebody else's by now, or nobody's.
        """
        tokens = {claim.job_id: claim.token for claim in claims}
        params = {
            "job_ids": list(tokens),
            "runs": [claim.run for claim in claims],
            "tokens": list(tokens.values()),
            "queue": self._queue,
            "epoch": self._epoch,
        }
        with translated(), self._conn.transaction():
            rows: Any = self._conn.execute(statement("claims/retake"), params).fetchall()
            parked: set[int] = set()
            for job_id in sorted(job_id for job_id, keyed in rows if keyed):
                parked |= self._parked([job_id], tokens[job_id])
        return {job_id for job_id, _ in rows} - parked

    def _without(self, batch: list[Claim], expired: Sequence[int]) -> list[Claim]:
        """What of a batch is still to run: a job not tried before its time is discarded here."""
        if not expired:
            return batch
        with translated():
            row: Any = self._conn.execute(
                statement("claims/discard_expired"),
                {"job_ids": list(expired), "epoch": self._epoch, "token": batch[0].token},
            ).fetchone()
        expire(self._conn, self._queue)  # where there is one, there are more
        gone = set(row[0])
        return [claim for claim in batch if claim.job_id not in gone]

    def _admitted(self, batch: list[Claim], keyed: Sequence[int]) -> list[Claim]:
        """What of a batch may run: a job whose concurrency key has no place for it is parked."""
        if not (batch and keyed):
            return batch
        with translated():
            parked = self._parked(keyed, batch[0].token)
        return [claim for claim in batch if claim.job_id not in parked]

    def _parked(self, job_ids: Sequence[int], token: int) -> set[int]:
        """Which of a claim's jobs have to wait for their concurrency keys."""
        params = {"job_ids": list(job_ids), "epoch": self._epoch, "token": token}
        row: Any = self._conn.execute(statement("claims/admit"), params).fetchone()
        return set(row[0])

    def _take(self, lanes: Lanes, limit: int) -> tuple[list[Claim], Sequence[int], Sequence[int]]:
        began = self._clock.monotonic()
        self._went_on = self._ahead and began < self._sweep_at
        if not self._went_on:
            self._begin_sweep(lanes.each, began)
        token = random_token()
        params = {
            "queue": self._queue,
            "kinds": lanes.kinds,
            "priorities": lanes.priorities,
            "bounds": as_array([self._after.get(lane, 0) for lane in lanes.each]),
            "limit": str(limit),
            "epoch": str(self._epoch),
            "token": str(token),
        }
        try:  # as translated() does, whose context costs what a lone job waits for
            row = self._hot.rows(params)[0]
        except Error as error:
            raise translate(error) from error
        batch = self._read(row, token, lanes)
        self._unlearned += len(batch)
        self._ahead = len(batch) == limit
        if not self._went_on:
            now = self._clock.monotonic()
            pause = max(SWEEP_EVERY, SWEEP_SHARE * (now - began))
            self._sweep_at = now + min(pause, FULL_SWEEP)
        return batch, row[11] or (), row[12] or ()

    def tidy(self) -> None:
        """Raise the floors, if it is time: what nobody has to wait for who waits for a job."""
        lanes, now = self._lanes, self._clock.monotonic()
        if self._unlearned >= LEARN_AT:
            self._unlearned, self._lessons = 0, LESSONS
        pause = LEARN_SOON if self._lessons else LEARN_LATE
        goes_on = self._ahead and now < self._sweep_at
        if lanes is None or goes_on or not self._learns or now < self._learned + pause:
            return
        self._learned, self._lessons = now, max(0, self._lessons - 1)
        params = {
            "queue": self._queue,
            "kinds": lanes.kinds,
            "priorities": lanes.priorities,
            "bounds": as_array([self._floors.of(lane) for lane in lanes.each]),
        }
        with translated():
            last, xmin, next_xid, lowest = prepared(self._conn, "claims/floors").rows(params)[0]
        self._floors.observe(last, xmin, next_xid, list(zip(lanes.each, lowest, strict=True)))

    def _begin_sweep(self, lanes: Sequence[Lane], now: float) -> None:
        if now >= self._full_sweep_at:
            self._full_sweep_at = now + FULL_SWEEP
            self._floors.reset()
        self._after = {lane: self._floors.of(lane) for lane in lanes}

    def _read(self, row: Any, token: int, lanes: Lanes) -> list[Claim]:
        if row[0] is None:
            return []
        ids, kinds, priorities, seqs, runs, attempts, maxima, timeouts, awaited, ages = row[:10]
        # In order of seq within each lane: its last one stays.
        found = dict(zip(zip(kinds, priorities, strict=True), seqs, strict=True))
        self._after.update(found)
        served = found if len(found) == 1 else [lane for lane in lanes.each if lane in found]
        self._last.update((priority, kind) for kind, priority in served)
        lines = bytes(row[10]).split(b"\n")
        columns = (ids, runs, attempts, maxima, kinds, timeouts, awaited)
        return list(map(_claim, zip(*columns, repeat(token, len(ids)), ages, lines, strict=True)))


@lru_cache(maxsize=256)
def lanes_of(kinds: tuple[str, ...], served: tuple[str | None, ...]) -> Lanes:
    """The lanes of these kinds, by priority; in each, from behind the kind that was served last."""
    each = [
        (kind, priority)
        for priority, last in zip(PRIORITIES, served, strict=True)
        for kind in behind(kinds, last)
    ]
    names, priorities = zip(*each, strict=True)
    return Lanes(each, as_array([f'"{name}"' for name in names]), as_array(priorities))


def behind(turns: Sequence[T], last: object) -> Sequence[T]:
    """Whose turn it is, when `last` was served last: who stands behind it, and all others after."""
    first = next((place for place, turn in enumerate(turns, 1) if turn == last), 0)
    return (*turns[first:], *turns[:first])
