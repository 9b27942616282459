"""The life of jobs, whatever the order of events: the database does what the model does.

Two consumers with hints and floors of their own claim from one queue, transactions commit late,
owners die, people cancel and retry, time passes, old jobs are pruned. After every step each job is
in the state that the model says; at the end every promise of `weirkeeper verify` is kept. Of jobs with a concurrency key never more run than their kind says,
and none waits while there is a place for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from shared.errors import Conflict
from shared.jobs.port import EnqueueOpts, Unique
from shared.jobs.states import COMPLETED, DISCARDED
from shared.jobs.work import Claim, Finish
from shared.postgres.application.jobs import PostgresJobs
from shared.postgres.inspection.verify import violations
from shared.postgres.queues import completions
from shared.postgres.queues.keys import UNTIL_ENABLED, key_open
from shared.postgres.queues.promotions import expire, promote
from shared.postgres.queues.rescues import rescue
from shared.postgres.queues.retention import prune_jobs
from tests.support.eager import eager_floors
from tests.support.job_model import ENDED, HELD, READY, SCHEDULED, ModelJob
from tests.support.job_world import KINDS, MOST, Consumer, World

IMPOSSIBLE = """
select 'log', a.job_id from weirkeeper.attempt a
where a.run < 1 or a.attempt > a.run or (a.state = 'pending' and a.attempt > 0)
   or (a.state = 'retryable' and a.attempt = 0)
union all
select w.place, w.job_id
from (select 'ready', job_id, priority, attempt, run from weirkeeper.ready
      union all select 'scheduled', job_id, priority, attempt, run from weirkeeper.scheduled
      union all select 'parked', job_id, priority, attempt, run from weirkeeper.parked
      union all select 'running', job_id, priority, attempt, run - 1 from weirkeeper.running
     ) w (place, job_id, priority, attempt, run)
join weirkeeper.job j on j.id = w.job_id
where w.attempt > w.run or w.priority <> j.priority
"""
HOUR, DAY = 3600.0, 86_400.0
consumers = st.sampled_from((0, 1))
priorities = st.sampled_from((2, 3))  # few lanes, so that jobs meet in them
outcomes = st.sampled_from(
    (
        ("completed", None),
        ("failed", None),
        ("failed", 0.0),
        ("timeout", None),
        ("crashed", None),
        ("snoozed", 0.0),
        ("snoozed", HOUR),
        ("discarded", None),
        ("interrupted", 0.0),
    )
)
picks = st.integers(0, 1_000_000)


class JobMachine(RuleBasedStateMachine):
    """Steps, made in the database and in the model."""

    world: World

    def __init__(self) -> None:
        super().__init__()
        self.world.clear()
        self.model: dict[str, ModelJob] = {}
        self.late: list[tuple[psycopg.Connection[Any], str]] = []
        self.stale: list[tuple[int, Claim]] = []
        self.closed: set[str] = set()

    def teardown(self) -> None:
        for conn, _ in self.late:
            conn.close()
        broken = violations(self.world.conn, DAY)
        assert [v for v in broken if v.rule != "running_without_owner"] == []

    # ── enqueueing ──────────────────────────────────────────────────────────────────────────────

    @rule(
        kind=st.sampled_from(KINDS),
        priority=priorities,
        max_attempts=st.integers(1, 3),
        later=st.booleans(),
        keyed=st.booleans(),
        expires=st.booleans(),
    )
    def enqueue(
        self,
        kind: str,
        priority: int,
        max_attempts: int,
        later: bool,
        keyed: bool,
        expires: bool = False,
    ) -> None:
        key = kind if keyed else None
        opts = EnqueueOpts(
            priority=priority,
            max_attempts=max_attempts,
            run_at=self._in_hours(1) if later else None,
            expires_at=self._in_hours(6) if expires else None,
            concurrency_key=key,
        )
        job = self.world.jobs.enqueue(kind, {}, opts)
        where = SCHEDULED if later else READY
        self.model[job] = ModelJob(max_attempts, key=key, where=where, expires=expires)

    @rule(number=st.just(1))
    def enqueue_unique(self, number: int) -> None:
        opts = EnqueueOpts(unique=Unique(), max_attempts=2)
        job = self.world.jobs.enqueue("t.ok", {"number": number}, opts)
        holder = self._holder(number)
        assert holder in (None, job)
        if holder is None:
            assert job not in self.model
            self.model[job] = ModelJob(2, unique=number)

    @precondition(lambda self: len(self.late) < 3)
    @rule(kind=st.sampled_from(KINDS), priority=priorities, who=consumers)
    def begin_late(self, kind: str, priority: int, who: int) -> None:
        """Draw a number in line and leave the transaction open; another overtakes it."""
        conn = psycopg.connect(self.world.url)
        opts = EnqueueOpts(priority=priority, max_attempts=2)
        self.late.append((conn, PostgresJobs(conn).enqueue(kind, {}, opts)))
        self.enqueue(kind, priority, 2, later=False, keyed=False)
        self.claim(who, 4, starts=False)

    @precondition(lambda self: self.late)
    @rule(pick=picks, commits=st.booleans(), who=consumers)
    def end_late(self, pick: int, commits: bool, who: int) -> None:
        """What was overtaken appears behind the hints, and is found at once."""
        conn, job = self.late.pop(pick % len(self.late))
        if commits:
            conn.commit()
            self.model[job] = ModelJob(2)
        else:
            conn.rollback()
        conn.close()
        self.claim(who, 4, starts=False)

    # ── running ─────────────────────────────────────────────────────────────────────────────────

    @rule(who=consumers, limit=st.integers(1, 4), starts=st.booleans())
    def claim(self, who: int, limit: int, starts: bool) -> None:
        consumer = self.world.consumers[who]
        claims = consumer.claims.claim(KINDS, limit)
        assert len(claims) <= limit
        assert bool(claims) == self._claimable(), "an empty claim means that nothing is to be had"
        for claim in claims:
            job = self.model[str(claim.job_id)]
            job.claim()
            assert (claim.run, claim.attempt) == (job.run, job.attempt)
            assert claim.max_attempts == job.max_attempts
            job.started = starts
            consumer.held[str(claim.job_id)] = claim
        self._met_expired()
        if starts:
            consumer.claims.mark_started(claims)

    @rule(who=consumers, pick=picks, how=outcomes)
    def finish(self, who: int, pick: int, how: tuple[str, float | None]) -> None:
        if (held := self._held(who, pick)) is None:
            return
        consumer, job, claim = held
        outcome, delay = how
        goes = self.model[job].goes(outcome, delay)
        finish = Finish(
            claim.job_id,
            claim.token,
            outcome=outcome,
            state=goes.state,
            delay=goes.delay,
            spent=goes.spent,
        )
        assert completions.finish(consumer.conn, consumer.epoch, [finish]) == 1
        self.model[job].finish(goes)

    @rule(who=consumers, pick=picks)
    def give_back(self, who: int, pick: int) -> None:
        if (held := self._held(who, pick)) is not None:
            consumer, job, claim = held
            assert consumer.claims.give_back([claim]) == 1
            self.model[job].give_back()

    @precondition(lambda self: self.stale)
    @rule(pick=picks)
    def finish_without_the_fence(self, pick: int) -> None:
        epoch, claim = self.stale[pick % len(self.stale)]
        for finish in (
            Finish(claim.job_id, claim.token),
            Finish(claim.job_id, claim.token, outcome="failed", state="discarded", error="late"),
        ):
            assert completions.finish(self.world.conn, epoch, [finish]) == 0

    @rule(who=consumers)
    def die(self, who: int) -> None:
        """The owner is gone; somebody finds out; its next life claims anew."""
        consumer = self.world.consumers[who]
        counts = rescue(self.world.conn, {consumer.epoch: "dead"})
        assert counts == {"dead": len(consumer.held)}
        for job, claim in consumer.held.items():
            self.model[job].rescue()
            self.stale.append((consumer.epoch, claim))
        consumer.begin()

    # ── by hand ─────────────────────────────────────────────────────────────────────────────────

    @precondition(lambda self: self.model)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        job = self._pick(pick)
        assert self.world.inspector.cancel(job) == self.model[job].cancel()

    @precondition(lambda self: self.model)
    @rule(pick=picks)
    def retry(self, pick: int) -> None:
        job = self._pick(pick)
        known = self.model[job]
        holder = None if known.unique is None else self._holder(known.unique)
        refused = known.state == COMPLETED or (known.where == ENDED and holder is not None)
        if refused:
            with pytest.raises(Conflict) as error:
                self.world.inspector.retry(job)
            if known.state != COMPLETED:
                assert error.value.job_id == holder
            return
        state = self.world.inspector.retry(job)
        known.retry()
        assert state == known.state

    @rule(key=st.sampled_from(KINDS))
    def close_or_open_a_key(self, key: str) -> None:
        self.closed ^= {key}
        key_open(self.world.conn, key, UNTIL_ENABLED if key in self.closed else None)

    # ── time ────────────────────────────────────────────────────────────────────────────────────

    @rule()
    def an_hour_passes(self) -> None:
        self.world.conn.execute("update weirkeeper.scheduled set run_at = run_at - interval '2h'")
        promoted, due = promote(self.world.conn, "t")
        assert promoted == len(self._in(SCHEDULED))
        [(ahead,)] = self.world.conn.execute(
            "select exists (select from weirkeeper.expiry where expires_at > now())"
        ).fetchall()
        assert (due is not None) == ahead
        for job in self._in(SCHEDULED):
            self.model[job].where = READY
        self._expire()

    @rule(swept=st.booleans())
    def the_moment_passes(self, swept: bool) -> None:
        """By which jobs were to start; who looks first may be the sweep, or a claim."""
        for table in ("job", "expiry"):
            self.world.conn.execute(
                f"update weirkeeper.{table} set expires_at = expires_at - interval '1 day'"
            )
        for known in self.model.values():
            known.late |= known.expires
        if swept:
            assert expire(self.world.conn, "t") == self._expire()

    @rule()
    def a_month_passes(self) -> None:
        """For what has ended: it is pruned."""
        for table, moment in (("attempt", "finished_at"), ("job", "created_at")):
            self.world.conn.execute(
                f"update weirkeeper.{table} set {moment} = {moment} - interval '30 days'"
            )
        pruned = prune_jobs(self.world.conn, DAY, 7 * DAY, lambda: False)
        ended = self._in(ENDED)
        assert (pruned.rows, pruned.whole) == (len(ended), True)
        for job in ended:
            del self.model[job]

    @invariant()
    def every_job_is_where_the_model_says(self) -> None:
        seen = {job.id: (job.state, job.attempt) for job in self.world.inspector.list(limit=500)}
        assert seen == {job: (m.state, m.attempt) for job, m in self.model.items()}
        held = {job for consumer in self.world.consumers for job in consumer.held}
        assert held == set(self._in(HELD))
        assert all(self._holding(key) <= most for key, most in MOST.items())
        assert self.world.conn.execute("select weirkeeper.stuck_keys()").fetchall() == []

    @invariant()
    def no_row_is_impossible(self) -> None:
        """What CHECK constraints leave to the statements that write these rows (decision 0027)."""
        assert self.world.conn.execute(IMPOSSIBLE).fetchall() == []

    # ── of the machine ──────────────────────────────────────────────────────────────────────────

    def _in(self, where: str) -> list[str]:
        return [job for job, known in self.model.items() if known.where == where]

    def _holding(self, key: str) -> int:
        return sum(known.key == key and known.where == HELD for known in self.model.values())

    def _claimable(self) -> bool:
        keys = [self.model[job].key for job in self._in(READY) if not self.model[job].expired]
        return any(
            key is None or (key not in self.closed and self._holding(key) < MOST[key])
            for key in keys
        )

    def _met_expired(self) -> None:
        """A claim that came to an expired job discards it, and then all others."""
        expired = [job for job, known in self.model.items() if known.expired]
        found = {self.world.inspector.get(job).state == DISCARDED for job in expired}
        assert len(found) <= 1, "some were left"
        if found == {True}:
            self._expire()

    def _expire(self) -> int:
        """Who looks discards them all; how many."""
        expired = [known for known in self.model.values() if known.expired]
        for known in expired:
            known.expire()
        return len(expired)

    def _pick(self, pick: int) -> str:
        return sorted(self.model, key=int)[pick % len(self.model)]

    def _holder(self, number: int) -> str | None:
        for job, known in self.model.items():
            if known.unique == number and known.keeps_others_out:
                return job
        return None

    def _held(self, who: int, pick: int) -> tuple[Consumer, str, Claim] | None:
        """One of the claims of a consumer, taken from it; None = it has none."""
        consumer = self.world.consumers[who]
        if not consumer.held:
            return None
        job = sorted(consumer.held, key=int)[pick % len(consumer.held)]
        claim = consumer.held.pop(job)
        self.stale.append((consumer.epoch, claim))
        return consumer, job, claim

    def _in_hours(self, hours: int) -> Any:
        query = "select now() + make_interval(hours => %s)"
        row = self.world.conn.execute(query, (hours,)).fetchone()
        assert row is not None
        return row[0]


@pytest.fixture
def machine(database_url: str) -> Iterator[type[JobMachine]]:
    world = World(database_url)
    yield type("Machine", (JobMachine,), {"world": world})
    world.close()


QUICK = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(600)
def test_the_database_does_what_the_model_does(machine: type[JobMachine]) -> None:
    with eager_floors():
        run_state_machine_as_test(machine, settings=QUICK)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_database_does_what_the_model_does_for_long(machine: type[JobMachine]) -> None:
    with eager_floors():
        run_state_machine_as_test(machine, settings=settings(QUICK, max_examples=400))
