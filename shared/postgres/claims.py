"""ADAPTER: claiming jobs for one queue process.

Before this: `ready` rows that the enqueue path, the relay or a promotion placed. After it: the
producer hands the claims to its pool. A claim takes rows lane by lane (a lane is a kind and a
priority). While claims come back full, the next starts where the last one ended; a short one makes
the next sweep from the lanes' floors, which catches rows that committed late or came back. An
empty answer therefore means that a sweep found nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from itertools import repeat
from typing import Any

from shared.backoff import random_token
from shared.clock import SYSTEM, Clock
from shared.jobs.work import Claim, Held, Mark
from shared.postgres.connect import Connection
from shared.postgres.failures import translated
from shared.postgres.floors import Floors, Lane
from shared.postgres.promotions import expire
from shared.postgres.statements import statement

PRIORITIES = (1, 2, 3, 4)
_claim = partial(tuple.__new__, Claim)  # of a tuple, without a call of Python's for each
FULL_SWEEP = 60.0  # seconds between sweeps from the very beginning: the net under the floors


class Claims:
    """Claims for one queue and one epoch, through one connection.

    Args:
        conn: of a hot session.
        queue: its name.
        epoch: of the process.
        clock: for the sweep from the beginning.
        floors: False = sweep from the beginning each time: for claims within longer transactions,
            in which a reply tells nothing of others' (shared.postgres.floors).
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
        self._was_ahead = False
        self._turn = 0
        self._full_sweep_at = clock.monotonic() + FULL_SWEEP

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` jobs of these kinds, by priority, kinds in turn.

        Returns:
            The claims; empty only when a sweep found nothing.

        Raises:
            DatabaseUnavailable: the session is gone, or the reply was lost: reconnect, make a new
                Claims, and reconcile, for the claim may have been committed.
        """
        if not kinds or limit < 1:
            return []
        lanes = self._lanes(kinds)
        while True:
            batch, expired, keyed = self._take(lanes, limit)
            live = self._admitted(self._without(batch, expired), keyed)
            if live or not (batch or self._was_ahead):
                return live

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

    def _lanes(self, kinds: Sequence[str]) -> list[Lane]:
        self._turn += 1
        first = self._turn % len(kinds)
        order = [*kinds[first:], *kinds[:first]]
        return [(kind, priority) for priority in PRIORITIES for kind in order]

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
            row: Any = self._conn.execute(
                statement("claims/admit"),
                {"job_ids": list(keyed), "epoch": self._epoch, "token": batch[0].token},
            ).fetchone()
        parked = set(row[0])
        return [claim for claim in batch if claim.job_id not in parked]

    def _take(
        self, lanes: list[Lane], limit: int
    ) -> tuple[list[Claim], Sequence[int], Sequence[int]]:
        self._was_ahead = self._ahead
        if not self._ahead:
            self._begin_sweep(lanes)
        bounds = [self._after.get(lane, 0) for lane in lanes]
        token = random_token()
        params = {
            "queue": self._queue,
            "kinds": [kind for kind, _ in lanes],
            "priorities": [priority for _, priority in lanes],
            "bounds": bounds,
            "limit": limit,
            "epoch": self._epoch,
            "token": token,
            "sweep": not self._ahead,
        }
        with translated(), self._conn.cursor(binary=True) as cursor:
            row: Any = cursor.execute(statement("claims/claim"), params).fetchone()
        lowest = None if row[14] is None else list(zip(lanes, row[14], strict=True))
        if self._learns:
            self._floors.observe(row[11], row[12], row[13], lowest)
        batch = self._read(row, token)
        self._ahead = len(batch) == limit
        return batch, row[15] or (), row[16] or ()

    def _begin_sweep(self, lanes: list[Lane]) -> None:
        now = self._clock.monotonic()
        if now >= self._full_sweep_at:
            self._full_sweep_at = now + FULL_SWEEP
            self._floors.reset()
        self._after = {lane: self._floors.of(lane) for lane in lanes}

    def _read(self, row: Any, token: int) -> list[Claim]:
        if row[0] is None:
            return []
        ids, kinds, priorities, seqs, runs, attempts, maxima, timeouts, awaited, ages = row[:10]
        # In order of seq within each lane: its last one stays.
        self._after.update(zip(zip(kinds, priorities, strict=True), seqs, strict=True))
        lines = bytes(row[10]).split(b"\n")
        columns = (ids, runs, attempts, maxima, kinds, timeouts, awaited)
        return list(map(_claim, zip(*columns, repeat(token, len(ids)), ages, lines, strict=True)))
