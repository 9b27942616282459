"""ADAPTER of the port Outbox: the relay's passes, each one statement and so one transaction.

A pass that is one statement leaves no transaction open whatever becomes of the relay: frozen or
killed, it holds no row for longer than the statement runs. Where a pass begins is decided here:

- from the *floor* (shared.postgres.queues.floors), below which no row can appear any more;
- while passes come back full, from the *hint*, the last seq taken, because the rows taken just now
  are dead weight until vacuum; but from the floor again after SWEEP_EVERY, so that a
  transaction which commits late does not wait for the end of a load;
- from the very beginning after a reconnect and once a minute, as the net under both.
"""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.rows import dict_row

from shared.clock import SYSTEM, Clock
from shared.events.outbox import BATCH, FannedOut
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.queues.floors import Floors

POISONED_AFTER = 5  # failures
SWEEP_EVERY = 0.2  # seconds between looks from the floor while passes are full
FORGET_EVERY = 60.0  # seconds between looks from the very beginning
_LAST_SEQ = 2**63 - 1
_LANE = ("", 0)  # the outbox is one lane


class PostgresOutbox:
    """Pending events, through a session of their own.

    Args:
        conn: a direct connection in autocommit mode; its settings are changed for good.
        clock: for the two intervals above.

    Raises:
        DatabaseUnavailable: the session ended.
    """

    def __init__(self, conn: Connection, clock: Clock = SYSTEM) -> None:
        self._conn = conn
        self._clock = clock
        self._floors = Floors()
        self._hint = 0  # 0 = begin at the floor
        self._swept_at = self._forgot_at = clock.monotonic()
        with translated():
            conn.execute(statement("relay/session"))

    @property
    def connected(self) -> bool:
        """Whether the session still stands, as far as it has been told."""
        return not self._conn.closed

    @property
    def backend_pid(self) -> int:
        """Server process of the session, for the process row."""
        return self._conn.info.backend_pid

    def next_pass(self) -> FannedOut:
        """Fan out the next events, at most BATCH, in order of seq."""
        now = self._clock.monotonic()
        if now - self._forgot_at >= FORGET_EVERY:
            self._forgot_at = now
            self._floors.reset()
        if self._hint and now - self._swept_at < SWEEP_EVERY:
            done = self._advance(self._run(after=self._hint))
            if done.rows:
                return done
        return self._sweep(now)

    def _sweep(self, now: float) -> FannedOut:
        self._swept_at, self._hint = now, 0
        row = self._run(after=self._floors.of(_LANE), look=True)
        lowest = [(_LANE, row["lowest"] or 0)]
        self._floors.observe(row["last_drawn"], row["xmin"], row["next_xid"], lowest)
        return self._advance(row)

    def _advance(self, row: dict[str, Any]) -> FannedOut:
        done = _told(row)
        self._hint = max(self._hint, row["last_claimed"]) if done.full else 0
        return done

    def pending(self) -> list[int]:
        """Seqs of the rows that `next_pass` would take, to be tried one by one."""
        self._hint = 0
        params = {"after": self._floors.of(_LANE), "size": BATCH}
        with translated():
            return [
                int(str(seq)) for (seq,) in self._conn.execute(statement("relay/pending"), params)
            ]

    def fan_out_row(self, seq: int) -> FannedOut:
        """Fan out one pending event; nothing if another relay was faster."""
        return _told(self._run(after=seq - 1, upto=seq))

    def fan_out_again(self, event_id: str) -> FannedOut:
        """Fan out an event that was set aside; nothing if another relay was faster."""
        return _told(self._run(size=0, retry=event_id))

    def set_aside(self, seq: int, error: str, delay: float) -> None:
        """Take an event that failed out of the line; its next try is `delay` seconds away."""
        params = {"seq": seq, "error": error, "delay": delay}
        with translated():
            self._conn.execute(statement("relay/set_aside"), params)

    def due(self, most: int) -> list[tuple[str, int]]:
        """Events set aside whose next try has come: (event id, failures so far)."""
        with translated():
            rows = self._conn.execute(statement("relay/due"), {"size": most}).fetchall()
        return [(str(event_id), int(str(failures))) for event_id, failures in rows]

    def failed_again(self, event_id: str, failures: int, error: str, delay: float) -> bool:
        """Count one more failure after `failures`; return whether that poisoned the event."""
        params = {
            "event_id": event_id,
            "failures": failures,
            "error": error,
            "delay": delay,
            "limit": POISONED_AFTER,
        }
        with translated():
            row = self._conn.execute(statement("relay/failed_again"), params).fetchone()
        return bool(row and row[0])

    def announce(self, announcements: tuple[str, ...]) -> None:
        """Tell those who wait for these events' fan-out: a hint."""
        if announcements:
            with translated():
                self._conn.execute(
                    statement("relay/announce"), {"chunks": list(announcements)}, prepare=True
                )

    def _run(
        self,
        *,
        after: int = 0,
        upto: int = _LAST_SEQ,
        size: int = BATCH,
        retry: str | None = None,
        look: bool = False,
    ) -> dict[str, Any]:
        params = {"after": after, "upto": upto, "size": size, "retry": retry, "look": look}
        with translated(), self._conn.cursor(row_factory=dict_row) as cursor:
            row = cursor.execute(statement("relay/fan_out"), params, prepare=True).fetchone()
        if row is None:
            raise psycopg.InternalError("a statement of aggregates gave no row")
        return row


def _told(row: dict[str, Any]) -> FannedOut:
    return FannedOut(
        rows=row["rows"],
        jobs=row["jobs"],
        oldest_age=row["oldest_age"] or 0.0,
        announcements=tuple(row["announcements"]),
        retries_due=row["retries_due"],
        full=row["claimed"] >= BATCH,
    )
