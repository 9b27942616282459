"""ADAPTER of the port Work: one queue process's two sessions, for claims and for wakes.

Opened anew after every outage: claims and floors learned before it may not be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import LiteralString

from shared.errors import DatabaseUnavailable
from shared.jobs.work import Around, Claim, Completed, Cut, DeadOwner, Finish, Held, Mark
from shared.postgres.driver.connect import Connection, Use, connect
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement
from shared.postgres.processes.registry import processes
from shared.postgres.queues import completions, controls, keys, moved, periodic, promotions, rescues
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.lines import Lines
from shared.postgres.queues.wakes import Wakes, queue_channel
from shared.services.process import ProcessIdentity, identity, life_mark


@dataclass(frozen=True, slots=True)
class Owner:
    """Who works: the slot's name (of sessions), the queue, the epoch."""

    slot: str
    queue: str
    epoch: int


class PostgresWork:
    """See shared.jobs.work.Work."""

    def __init__(self, conn: Connection, wakes: Wakes, owner: Owner) -> None:
        self._conn = conn
        self._wakes = wakes
        self._owner = owner
        self._claims = Claims(conn, owner.queue, owner.epoch)  # for what is held
        self._beats = rescues.Beats()
        self._lines = Lines(conn, owner.queue, owner.epoch)
        self._astray = True  # until a look tells whether jobs may be brought here

    @classmethod
    def open(cls, url: str, owner: Owner) -> PostgresWork:
        """Open both sessions.

        Raises:
            DatabaseUnavailable: try again later.
        """
        conn = connect(url, f"{owner.slot} work", Use.HOT)
        wakes = None
        try:
            number = _number(conn, owner.queue)
            wakes = Wakes(url, owner.slot, number, queue_channel(number))
            wakes.open()
        except BaseException:
            conn.close()
            raise
        return cls(conn, wakes, owner)

    @property
    def connected(self) -> bool:
        """Whether both sessions still stand."""
        return not (self._conn.closed or self._wakes.connection.closed)

    @property
    def sleeper(self) -> int:
        """Server process of the session that sleeps, for the process row."""
        return self._wakes.backend_pid

    def claim(self, kinds: Sequence[str], limit: int) -> list[Claim]:
        """Claim at most `limit` jobs; empty only when a look at everything found nothing."""
        return self._lines.claim(kinds, limit)

    def tidy(self) -> None:
        """After a claim: what can wait until its jobs were handed over."""
        self._lines.tidy()

    @property
    def cut(self) -> Cut:
        """Which limits kept the last claim from more."""
        return self._lines.cut

    def learn(self) -> None:
        """Read the limits anew that claims have to keep."""
        self._astray = self._lines.learn()

    def give_back(self, claims: Sequence[Claim | Held]) -> int:
        """Return jobs that were not started; how many were still ours."""
        return self._claims.give_back(claims)

    def mark_started(self, claims: Sequence[Claim]) -> None:
        """Mark jobs that have been running for a moment."""
        self._claims.mark_started(claims)

    def mark_progress(self, marks: Sequence[Mark]) -> None:
        """Keep how far jobs are."""
        self._claims.mark_progress(marks)

    def quarantine(self, kind: str, why: str) -> bool:
        """Have every claim skip a kind until somebody resumes it; whether it was not paused yet."""
        return controls.quarantine(self._conn, kind, why)

    def held(self) -> list[Held]:
        """What the database thinks this process holds."""
        return self._claims.held()

    def retake(self, claims: Sequence[Claim]) -> set[int]:
        """Hold jobs again whose claims the database has lost, if they still wait; their ids."""
        return self._claims.retake(claims)

    def finish(self, finishes: Sequence[Finish]) -> int:
        """Write ends in one transaction; how many still held the fence."""
        return completions.finish(self._conn, self._owner.epoch, finishes)

    def complete(self, runs: Sequence[Completed]) -> int:
        """Write plain successes in one transaction; how many still held the fence."""
        return completions.complete(self._conn, self._owner.epoch, runs)

    def promote(self, *, look: bool = False) -> tuple[int, float | None, Around | None]:
        """Put jobs in line whose time has come; with `look`, look around."""
        epoch = self._owner.epoch if look else None
        moved, due, around = promotions.promote_and_look(self._conn, self._owner.queue, epoch)
        return moved, 0.0 if moved >= promotions.BATCH else due, around

    def bring(self, kinds: Sequence[str]) -> tuple[int, bool]:
        """Bring jobs of these kinds here that wait in another queue; see to queues left alone."""
        if not self._astray:  # as the last look at the limits told
            return 0, False
        came = moved.bring(self._conn, self._owner.queue, self._owner.epoch, kinds)
        self._astray = max(came, promotions.promote_unattended(self._conn)) >= moved.BATCH
        return came, self._astray

    def tick(self, kinds: Sequence[str]) -> float | None:
        """Start what is due of these kinds' periodic jobs; seconds until the next tick, or None."""
        return periodic.tick(self._conn, kinds)

    def unpark(self) -> int:
        """Let jobs go on that wait for a concurrency key in vain: the net; how many."""
        return keys.sweep(self._conn)

    def dead_owners(self) -> list[DeadOwner]:
        """Dead processes that hold jobs, of any queue."""
        dead = rescues.dead_owners(self._conn, self._owner.epoch, self._beats)
        marks = self._marks() if "dead" in dead.values() else {}
        return [DeadOwner(epoch, reason, marks.get(epoch)) for epoch, reason in dead.items()]

    def rescue(self, dead: Sequence[DeadOwner]) -> Mapping[str, int]:
        """Take their jobs back; how many, by reason."""
        return rescues.rescue(self._conn, {owner.epoch: owner.reason for owner in dead})

    def oldest(self, kinds: Sequence[str]) -> float | None:
        """Seconds that the oldest job of these kinds has been claimable; None = there is none."""
        return self._age(statement("queues/oldest"), kinds)

    def oldest_free(self, kinds: Sequence[str]) -> float | None:
        """As `oldest`, of jobs whose rows nobody has locked."""
        return self._age(statement("queues/oldest_free"), kinds)

    def _age(self, look: LiteralString, kinds: Sequence[str]) -> float | None:
        params = {"queue": self._owner.queue, "kinds": list(kinds)}
        with translated():
            row = self._conn.execute(look, params).fetchone()
        return None if row is None or row[0] is None else float(str(row[0]))

    def fileno(self) -> int:
        """Readable when a notice has arrived."""
        return self._wakes.fileno()

    def to_cancel(self) -> list[int]:
        """Ids of jobs that this process holds and whose end was asked for."""
        return controls.to_cancel(self._conn, self._owner.epoch, self._owner.queue)

    def drain(self) -> list[str]:
        """Take the notices that arrived; return what each said."""
        return self._wakes.drain()

    def fall_asleep(self) -> bool:
        """Try to sleep; True = every writer from now on notifies. Then look once more."""
        return self._wakes.fall_asleep()

    def wake_up(self) -> None:
        """Let writers be silent again: there is more to do."""
        self._wakes.wake_up()

    def close(self) -> None:
        """End the sessions."""
        self._wakes.close()
        self._conn.close()

    def _marks(self) -> dict[int, str]:
        """Marks of what processes of this host started, by their epochs."""
        here = identity()
        return {
            row["epoch"]: life_mark(row["epoch"], row["pid"], row["pid_started"])
            for row in processes(self._conn)
            if here.same_host(
                ProcessIdentity(
                    row["host"],
                    row["boot_id"],
                    row["pid_namespace"],
                    row["pid"],
                    row["pid_started"],
                )
            )
        }


def _number(conn: Connection, queue: str) -> int:
    with translated():
        row = conn.execute(statement("queues/number"), {"queue": queue}).fetchone()
    if row is None:
        raise DatabaseUnavailable(f"queue {queue} is not declared in this database yet")
    return int(str(row[0]))
