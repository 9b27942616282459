"""ADAPTER: periodic jobs: their declarations, the ticks that are due, extra runs, how they went.

Before this: the application as data. After it: ordinary jobs. Any number of processes may look at
once: a tick is moved on under a guard (migration 0006), so exactly one of them starts it. The next
tick is stored; a restart therefore only catches up. The clock is the database's alone.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from shared.clock import SYSTEM
from shared.errors import NotFound, WeirkeeperError
from shared.jobs.inspect import Job, PeriodicStatus
from shared.jobs.kinds import Kind
from shared.jobs.periodic import Periodic
from shared.jobs.schedule import LONGEST_RUN, Schedule
from shared.postgres.driver.connect import Connection
from shared.postgres.driver.failures import translated
from shared.postgres.driver.statements import statement

LATE = 60.0  # seconds after which a tick that nobody started counts as missed

log = logging.getLogger(__name__)


def declare(
    conn: Connection,
    periodics: Sequence[Periodic],
    kinds: Mapping[str, Kind],
    *,
    replace: bool = False,
) -> None:
    """Write periodic jobs that are new or changed; part of shared.postgres.queues.catalog.

    Args:
        conn: in the transaction of the declarations, after the kinds.
        periodics: of the application.
        kinds: every kind, by name.
        replace: remove periodic jobs that are not among these.
    """
    rows = sorted(periodics, key=lambda p: p.name)
    conn.execute(
        statement("periodic/declare"),
        {
            "names": [p.name for p in rows],
            "kinds": [p.kind for p in rows],
            "args": [json.dumps(dict(p.args)) for p in rows],
            "every": [None if p.every is None else float(p.every) for p in rows],
            "crons": [p.cron for p in rows],
            "timezones": [None if p.cron is None else p.timezone for p in rows],
            "missed": [p.missed for p in rows],
            "timeouts_ms": [round(1000 * _limit(p, kinds[p.kind])) for p in rows],
            "at_once": [p.starts_at_once for p in rows],
        },
    )
    if replace:
        names = {"names": [p.name for p in rows]}
        conn.execute(statement("periodic/lock_retired"), names)
        conn.execute(statement("periodic/retire"), names)


def tick(conn: Connection, kinds: Sequence[str]) -> float | None:
    """Start every tick that is due, of the kinds that this process knows.

    Args:
        conn: in autocommit mode.
        kinds: names.

    Returns:
        Seconds until the next tick; None = there are no such periodic jobs.

    Raises:
        DatabaseUnavailable: try again later; nothing is lost.
    """
    with translated():
        rows: Sequence[Any] = conn.execute(
            statement("periodic/schedules"), {"kinds": list(kinds)}
        ).fetchall()
    waits = [wait for row in rows if (wait := _attend(conn, _Look.of(row))) is not None]
    return min(waits, default=None)


def run_periodic(conn: Connection, name: str) -> str:
    """Enqueue an extra run; see shared.jobs.port.Inspector.run_periodic.

    Raises:
        NotFound: no such periodic job.
    """
    with translated():
        row = conn.execute(statement("periodic/run"), {"name": name}).fetchone()
    if row is None or row[0] is None:
        raise NotFound(f"periodic: expected the name of one that is declared; got {name[:63]!r}")
    return str(row[0])


def periodic_status(
    conn: Connection, describe: Callable[[Sequence[int]], Sequence[Job]]
) -> list[PeriodicStatus]:
    """How the periodic jobs go, by name; see shared.jobs.port.Inspector.periodic.

    Args:
        conn: any session.
        describe: jobs by their ids, without args.
    """
    with translated():
        rows: Sequence[Any] = conn.execute(statement("periodic/list")).fetchall()
    jobs = {job.id: job for job in describe([n for row in rows for n in row[7] or ()])}
    return [
        PeriodicStatus(
            name=name,
            kind=kind,
            schedule=Schedule(every, cron, timezone or "UTC").describe(),
            next_at=_iso(next_at),
            last_started_at=_iso(last),
            last_result=state,
            last_error=error,
            starts=tuple(jobs[str(n)] for n in ids or () if str(n) in jobs),
        )
        for name, kind, every, cron, timezone, next_at, last, ids, state, error in rows
    ]


@dataclass(frozen=True, slots=True)
class _Look:
    """One periodic job as a process saw it, at the database's `now`."""

    name: str
    schedule: Schedule
    skips: bool
    next_at: datetime | None
    ran_before: bool
    now: datetime

    @classmethod
    def of(cls, row: Any) -> _Look:
        name, every, cron, timezone, missed, *rest = row
        return cls(name, Schedule(every, cron, timezone or "UTC"), missed == "skip", *rest)

    def missed(self, due: datetime) -> bool:
        """Whether the tick is to be left out; never the first one ever, which waits for a start."""
        moment = self.schedule.cron and self.schedule.next_after(due - timedelta(seconds=1))
        if not self.ran_before and moment != due:
            return False
        gap = _seconds(self.schedule.next_after(due, due), due)
        return self.skips and _seconds(self.now, due) > min(LATE, gap)


def _attend(conn: Connection, look: _Look) -> float | None:
    """Correct or fire; seconds until the next tick. One that cannot start leaves the others."""
    try:
        right = look.schedule.corrected(look.next_at, look.now)
        if right is not None:
            params = {"name": look.name, "right": right, "wrong": look.next_at}
            with translated():
                conn.execute(statement("periodic/correct"), params)
            return _seconds(right, look.now)
        if look.next_at is None or look.next_at > look.now:
            return None if look.next_at is None else _seconds(look.next_at, look.now)
        return _fire(conn, look, look.next_at)
    except WeirkeeperError as error:  # such as a time zone that this host does not have
        if error.transient:
            raise
        log.error("periodic job %s is not started here: %s", look.name, error)  # noqa: TRY400
        return None


def _fire(conn: Connection, look: _Look, due: datetime) -> float:
    following = look.schedule.next_after(look.now, due)
    params = {"name": look.name, "tick": due, "following": following, "skip": look.missed(due)}
    with translated():
        row = conn.execute(statement("periodic/fire"), params).fetchone()
    if row is not None and row[0] is not None:
        late = _seconds(look.now, due)
        log.info("periodic job %s: job %s started, %.1f s late", look.name, row[0], late)
    return _seconds(following, look.now)


def _limit(periodic: Periodic, kind: Kind) -> float:
    shortest = periodic.schedule.shortest(SYSTEM.wall())
    return min(LONGEST_RUN, shortest, kind.timeout or LONGEST_RUN)


def _seconds(moment: datetime, now: datetime) -> float:
    return (moment - now).total_seconds()


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="milliseconds")
