"""Deeds whose plans are tried on crowded tables (tests.support.crowd): those beside a job's own path.

A deed is what a process does on its own kind of session, through the code that does it for real.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.jobs.inspect import Progress
from shared.jobs.port import EnqueueOpts
from shared.jobs.work import Claim, Finish, Mark
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, Use
from shared.postgres.driver.statements import statement
from shared.postgres.queues import completions, keys, periodic
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.lines import Lines
from shared.postgres.queues.retention import discard_unknown, prune_records
from tests.support.crowd import OWNER
from tests.support.past import WEEK

KIND, QUEUE = "t.ok", "t"
KINDS = ("t.ok", "t.fail", "t.noop")


@dataclass
class Ground:
    """The database and how many jobs it has: which id stands where is known (tests.support.crowd)."""

    url: str
    number: int = 0

    def held(self, most: int = 50) -> list[Claim]:
        return [
            Claim(i, 1, 0, 3, KIND, 1.0, False, i, 0.0, b"{}")
            for i in range(self.number + 1, self.number + most + 1)
        ]

    def ids(self, digit: int, most: int = 20) -> list[int]:
        """Jobs of one place, far from the beginning."""
        first = self.number // 2 // 10 * 10 + digit
        return list(range(first, first + 10 * most, 10))


Deed = Callable[[Connection, Ground], Any]


def _every_limit(conn: Connection, _: Ground) -> None:
    """A cap, a rate that has started much, owners' turns, and keys: all for one kind."""
    conn.execute("update weirkeeper.queue set cap = 100000 where name = %s", (QUEUE,))
    conn.execute(
        "update weirkeeper.kind set fair = true, rate_n = 10000000, rate_ms = 3600000, max_per_key = 2"
        " where name = %s",
        (KIND,),
    )
    jobs = PostgresJobs(conn)
    for name in ("k7", "k7", "another"):
        jobs.enqueue(KIND, {}, EnqueueOpts(concurrency_key=name, priority=1, owner_id="o7"))
    lines = Lines(conn, QUEUE, OWNER + 4)
    taken = [claim for _ in range(3) for claim in lines.claim(KINDS, 20)]
    completions.finish(conn, OWNER + 4, [Finish(c.job_id, c.token) for c in taken])


def _told(conn: Connection, ground: Ground) -> None:
    """How far jobs are; that what they depend on is away; both kinds of ends in one batch."""
    held = ground.held(20)
    Claims(conn, QUEUE, OWNER).mark_progress(
        [Mark(c.job_id, c.token, Progress(1, 2)) for c in held[:10]]
    )
    away = {"outcome": "snoozed", "state": "pending", "delay": 60.0, "spent": False}
    beyond = Finish(0, 0, "failed", "retryable", 60.0, error="no")
    ends = [Finish(c.job_id, c.token, **away, cause="outage", horizon=1.0, beyond=beyond)
            for c in held[:10]]  # fmt: skip
    completions.finish(conn, OWNER, [*ends, *(Finish(c.job_id, c.token) for c in held[10:])])


def _net(conn: Connection, _: Ground) -> None:
    """Keys whose jobs wait in vain, and keys that nobody uses."""
    keys.sweep(conn)
    conn.execute(statement("retention/prune_keys"), {"size": 500})


def _strangers(conn: Connection, _: Ground) -> None:
    """Jobs of kinds that nobody knows: here, all that wait."""
    once = iter((False, True))
    discard_unknown(conn, ["another"], [], 0.0, lambda: next(once))


def _records(conn: Connection, _: Ground) -> None:
    """What else retention removes: processes, drains, ticks, replays."""
    prune_records(conn, WEEK, lambda: False)


def _ticks(conn: Connection, _: Ground) -> None:
    conn.execute(
        "insert into weirkeeper.periodic (name, kind, every, timeout_ms, next_at)"
        " values ('p', %s, interval '1 hour', 1000, now())",
        (KIND,),
    )
    periodic.tick(conn, KINDS)
    periodic.run_periodic(conn, "p")


# What is done, and through which session.
ASIDE: Mapping[str, tuple[Use, Deed]] = {
    "every limit": (Use.HOT, _every_limit),
    "told": (Use.HOT, _told),
    "net": (Use.HOT, _net),
    "ticks": (Use.HOT, _ticks),
    "strangers": (Use.HANDLER, _strangers),
    "records": (Use.HANDLER, _records),
}
# Their batches are as large as the table lets them be, up to a bound.
BOUNDED = ("net", "strangers", "records")
