"""What concurrent sessions do to a few jobs, where the jobs begin, and what must hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations, combinations_with_replacement
from typing import Any

from shared.app import load_app
from shared.jobs.port import EnqueueOpts, Unique
from shared.jobs.work import Claim, Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.driver.connect import Connection, connect
from shared.postgres.driver.statements import statement
from shared.postgres.inspection.verify import violations
from shared.postgres.queues import completions, controls, keys, moved, promotions
from shared.postgres.queues.catalog import declare
from shared.postgres.queues.claims import Claims
from shared.postgres.queues.rescues import rescue
from shared.postgres.queues.retention import prune_jobs
from tests.support.orders import Act
from tests.support.past import never
from tests.support.steps import Notices

APP, KIND, QUEUE, KEY = "tests.support.app:app", "t.ok", "t", "k"
BEFORE = "before"  # the queue of what is astray
OWNER, OTHER = 77, 78  # epochs: of the claims that a job begins with, and of those made meanwhile
ARGS = {"unique": 1}
TABLES = ("ready", "scheduled", "parked", "running")
CLEAR = "".join(
    f"delete from weirkeeper.{table};"
    for table in ("job", *TABLES, "attempt", "unique_key", "expiry", "key")
)
FINAL = "('completed', 'discarded', 'cancelled')"
# Every job that there was: where it is, its last word, what it spent, who holds its key.
STANDING = f"""
    select j.id, j.unique_key is not null,
           {" + ".join(f"(select count(*) from weirkeeper.{t} w where w.job_id = j.id)" for t in TABLES)},
           coalesce(l.state in {FINAL}, false), coalesce(l.state, ''),
           (select u.job_id from weirkeeper.unique_key u where u.hash = j.unique_key),
           (select bool_and(a.attempt - a.before in (0, 1))
            from (select a.attempt, lag(a.attempt, 1, 0) over (order by a.run) as before
                  from weirkeeper.attempt a where a.job_id = j.id) a),
           (select bool_and(w.attempt = coalesce(l.attempt, 0) and w.run >= coalesce(l.run, 0))
            from (select y.attempt, y.run from weirkeeper.ready y where y.job_id = j.id
                  union all
                  select s.attempt, s.run from weirkeeper.scheduled s where s.job_id = j.id
                  union all
                  select p.attempt, p.run from weirkeeper.parked p where p.job_id = j.id
                  union all
                  select r.attempt, r.run - 1 from weirkeeper.running r where r.job_id = j.id) w)
    from weirkeeper.job j
    left join lateral (select a.state, a.attempt, a.run from weirkeeper.attempt a
                       where a.job_id = j.id order by a.run desc limit 1) l on true"""
# Jobs with a key: how many hold a place, and how many run without.
TAKEN = """
    select j.concurrency_key, count(w.key), count(*) filter (where w.runs and w.key is null)
    from weirkeeper.job j
    join (select r.job_id, r.key, true as runs from weirkeeper.running r
          union all
          select y.job_id, y.key, false from weirkeeper.ready y) w on w.job_id = j.id
    where j.concurrency_key is not null group by 1"""
# How often each job became final, as the log tells: a retry by hand keeps what the state was.
ENDS = f"""
    select a.job_id, count(*) from weirkeeper.attempt a
    where a.state in {FINAL} or a.evidence->>'was' in {FINAL} group by 1"""


@dataclass
class Jobs:
    """A few jobs, and the claims that somebody holds or held on them."""

    ids: list[int]
    claims: list[Claim] = field(default_factory=list)

    def finish(self, conn: Connection, **how: Any) -> int:
        """All at once; in the opposite order of the ids, which the adapter has to mend."""
        ends = [Finish(claim.job_id, claim.token, **how) for claim in reversed(self.claims)]
        return completions.finish(conn, OWNER, ends)


class World:
    """A database with two jobs, again and again."""

    def __init__(self, url: str) -> None:
        self.conn = connect(url, "world")
        declare(self.conn, load_app(APP))
        self.conn.execute(
            "insert into weirkeeper.queue (name, awaited) values (%s, false)", (BEFORE,)
        )
        self._notices = Notices(url)
        self._before: dict[int, int] = {}
        self._heard = 0

    def begin(self, where: str) -> Jobs:
        """Nothing but two jobs that stand there."""
        self.conn.execute(CLEAR)
        jobs = BEGINNINGS[where](self.conn)
        self._before = dict(self.conn.execute(ENDS).fetchall())
        self._heard = len(self._notices.heard())
        return jobs

    def check(self, jobs: Jobs, left: range, claimed: int) -> None:
        """One place, one end, one notice, a consistent log, a key that is held by who may hold it.

        Args:
            jobs: that it began with.
            left: how many of the claims that it began with may still be there.
            claimed: how many jobs were claimed meanwhile.
        """
        rows = self.conn.execute(STANDING).fetchall()
        for job, unique, places, final, state, holder, steps, spent in rows:
            assert places + final == 1, f"{job} is in {places} places, final: {final}"
            assert steps in (True, None), f"{job}: attempts jump"
            assert spent in (True, None), f"{job}: the row and the log differ"
            if unique and state in ("discarded", "cancelled") and final:
                assert holder != job, f"{job} is {state} and keeps its key"
            elif unique:
                assert holder == job, f"{job} has lost its key to {holder}"
        known = {row[0] for row in rows}
        self._check_gone(set(jobs.ids) - known)
        self._check_notices(known)
        held = "select count(*) from weirkeeper.running where epoch = %s"
        for epoch, right in ((OTHER, range(claimed, claimed + 1)), (OWNER, left)):
            [(rows_of,)] = self.conn.execute(held, (epoch,)).fetchall()
            assert rows_of in right, f"{rows_of} rows of {epoch}; expected {right}"
        self._check_places()
        broken = [v for v in violations(self.conn, 0) if v.rule != "running_without_owner"]
        assert broken == []

    def _check_places(self) -> None:
        """Of one key one job runs, or is about to; none waits for it while it has a place."""
        taken = self.conn.execute(TAKEN).fetchall()
        assert all(places <= 1 and not without for _, places, without in taken), taken
        stuck = self.conn.execute("select weirkeeper.stuck_keys()").fetchall()
        assert stuck == [], "it waits in vain"

    def _check_gone(self, ids: set[int]) -> None:
        """What was pruned has left nothing."""
        for table in (*TABLES, "attempt", "unique_key"):
            left = f"select count(*) from weirkeeper.{table} where job_id = any (%s)"
            assert self.conn.execute(left, (list(ids),)).fetchone() == (0,), table

    def _check_notices(self, known: set[int]) -> None:
        heard = [int(job) for job in self._notices.heard()]
        ends = dict(self.conn.execute(ENDS).fetchall())
        new = {job: ends.get(job, 0) - self._before.get(job, 0) for job in known}
        told = self._notices.since(self._heard)
        assert {job: told.count(str(job)) for job in known} == new, heard

    def close(self) -> None:
        self._notices.close()
        self.conn.close()


# ── where they begin ────────────────────────────────────────────────────────────────────────────


def _enqueue(conn: Connection, **opts: Any) -> Jobs:
    port = PostgresJobs(conn)
    unique = EnqueueOpts(unique=Unique(), max_attempts=2, **opts)
    plain = EnqueueOpts(max_attempts=2, **opts)
    return Jobs([int(port.enqueue(KIND, ARGS, unique)), int(port.enqueue(KIND, {}, plain))])


def _astray(conn: Connection) -> Jobs:
    """In the line of a queue where their kind was declared until now."""
    jobs = _ready(conn)
    conn.execute("update weirkeeper.kind set declared_at = now()")
    conn.execute("update weirkeeper.job set queue = %s", (BEFORE,))
    conn.execute("update weirkeeper.ready set queue = %s", (BEFORE,))
    return jobs


def _running(conn: Connection) -> Jobs:
    jobs = _enqueue(conn)
    claims = Claims(conn, QUEUE, OWNER)
    jobs.claims = claims.claim([KIND], 10)
    claims.mark_started(jobs.claims)
    assert len(jobs.claims) == HELD["running"]
    return jobs


def _ready(conn: Connection) -> Jobs:
    """In line, after a claim that was given back: who made it must not end them any more."""
    jobs = _running(conn)
    Claims(conn, QUEUE, OWNER).give_back(jobs.claims)
    return jobs


def _scheduled(conn: Connection) -> Jobs:
    """Due again after a failure."""
    jobs = _running(conn)
    jobs.finish(conn, outcome="failed", state="retryable", delay=60.0)
    conn.execute("update weirkeeper.scheduled set run_at = now() - interval '1 s'")
    return jobs


def _expiring(conn: Connection) -> Jobs:
    """In line, never tried, and to be started before now."""
    jobs = _enqueue(conn)
    conn.execute("update weirkeeper.job set expires_at = now() - interval '1 s'")
    conn.execute(
        "insert into weirkeeper.expiry (queue, expires_at, job_id)"
        " select queue, expires_at, id from weirkeeper.job"
    )
    return jobs


def _cancelled(conn: Connection) -> Jobs:
    jobs = _enqueue(conn)
    controls.cancel(conn, jobs.ids)
    return jobs


def _keyed(conn: Connection) -> Jobs:
    """Of three with one key one runs; the others are parked."""
    port = PostgresJobs(conn)
    keyed = EnqueueOpts(concurrency_key=KEY, max_attempts=2)
    jobs = Jobs([int(port.enqueue(KIND, {}, keyed)) for _ in range(3)])
    claims = Claims(conn, QUEUE, OWNER)
    jobs.claims = claims.claim([KIND], 10)
    claims.mark_started(jobs.claims)
    assert [claim.job_id for claim in jobs.claims] == jobs.ids[:1]
    return jobs


BEGINNINGS: Mapping[str, Callable[[Connection], Jobs]] = {
    "ready": _ready,
    "astray": _astray,
    "running": _running,
    "scheduled": _scheduled,
    "expiring": _expiring,
    "cancelled": _cancelled,
    "keyed": _keyed,
}
HELD = {"running": 2, "keyed": 1}  # claims that are held at the beginning


# ── what is done to them ────────────────────────────────────────────────────────────────────────

Deed = Callable[[Jobs, Connection], Any]


def _cancel(jobs: Jobs, conn: Connection, *, which: slice = slice(None)) -> Any:
    """One statement, as many callers make it: what it cannot get hold of it tells."""
    ids = jobs.ids[which]
    return conn.execute(statement("controls/cancel"), {"ids": ids}).fetchall()


def _ends(**how: Any) -> Deed:
    return lambda jobs, conn: jobs.finish(conn, **how)


DEEDS: Mapping[str, Deed] = {
    "claim": lambda jobs, conn: len(Claims(conn, QUEUE, OTHER).claim([KIND], 10)),
    "claim before": lambda jobs, conn: len(Claims(conn, BEFORE, OTHER).claim([KIND], 10)),
    "complete": _ends(),
    "fail": _ends(outcome="failed", state="retryable", delay=0.0, error="no"),
    "snooze": _ends(outcome="snoozed", state="pending", delay=60.0, spent=False),
    "discard": _ends(outcome="discarded", state="discarded", error="no"),
    "give back": lambda jobs, conn: Claims(conn, QUEUE, OWNER).give_back(jobs.claims),
    "rescue": lambda jobs, conn: sum(rescue(conn, {OWNER: "dead"}).values()),
    "cancel": _cancel,
    "cancel one": partial(_cancel, which=slice(1)),
    "cancel the last": partial(_cancel, which=slice(-1, None)),
    "retry": lambda jobs, conn: controls.retry(conn, jobs.ids),
    "enqueue again": lambda jobs, conn: PostgresJobs(conn).enqueue(
        KIND, ARGS, EnqueueOpts(unique=Unique())
    ),
    "prune": lambda jobs, conn: prune_jobs(conn, 0, 0, never),
    "promote": lambda jobs, conn: promotions.promote(conn, QUEUE),
    "enqueue another": lambda jobs, conn: PostgresJobs(conn).enqueue(
        KIND, {}, EnqueueOpts(concurrency_key=KEY)
    ),
    "open the key": lambda jobs, conn: keys.key_open(conn, KEY),
    "sweep": lambda jobs, conn: keys.sweep(conn),
    "prune keys": lambda jobs, conn: conn.execute("select weirkeeper.prune_keys(10)").fetchone(),
    "expire": lambda jobs, conn: promotions.expire(conn, QUEUE),
    "bring": lambda jobs, conn: moved.bring(conn, QUEUE, OTHER, [KIND]),
}
FENCED = ("complete", "fail", "snooze", "discard", "give back", "rescue")
BY_HAND = ("cancel", "cancel one", "retry", "enqueue again", "prune")
WHERE: Mapping[str, Sequence[str]] = {
    "ready": ("claim", "complete", *BY_HAND),
    "astray": ("bring", "claim", "claim before", *BY_HAND),
    "running": (*FENCED, "claim", *BY_HAND),
    "scheduled": ("promote", "claim", *BY_HAND),
    "expiring": ("expire", "promote", "claim", *BY_HAND),
    "cancelled": ("claim", *BY_HAND),
    "keyed": (
        *("complete", "snooze", "give back", "rescue", "claim", "cancel", "cancel the last"),
        *("enqueue another", "open the key", "sweep"),
    ),
}
# Of three, these as well.
MORE: Mapping[str, Sequence[str]] = {"keyed": ("fail", "discard", "retry", "prune", "prune keys")}


def casts(where: str, sessions: int) -> list[tuple[str, ...]]:
    """Every choice of so many deeds; of two, also the same one twice."""
    if sessions == 2:
        return list(combinations_with_replacement(WHERE[where], sessions))
    return list(combinations((*WHERE[where], *MORE.get(where, ())), sessions))


def acts(jobs: Jobs, names: Sequence[str]) -> list[Act]:
    """The deeds, on these jobs."""
    return [partial(DEEDS[name], jobs) for name in names]


def left(where: str, names: Sequence[str], results: Sequence[Any]) -> range:
    """How many of the claims that it began with may still be held, and that each ended once."""
    if where not in HELD:
        return range(1)
    held = HELD[where]
    ended = sum(r for name, r in zip(names, results, strict=True) if name in FENCED)
    # A rescue passes over what somebody has locked at that moment: it comes again.
    sure = any(name in FENCED and name != "rescue" for name in names)
    assert ended == held if sure else ended <= held, f"{ended} ends of {held} claims"
    return range(held - ended, held - ended + 1)


def claimed(names: Sequence[str], results: Sequence[Any]) -> int:
    """How many jobs were claimed meanwhile."""
    return sum(r for name, r in zip(names, results, strict=True) if name.startswith("claim"))
