"""What is the memory adapter's own: time, handlers in place of others, transactions, its limits."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from shared.backoff import Backoff
from shared.errors import ConfigurationError, Conflict, DatabaseUnavailable, InvalidArguments
from weirkeeper import (
    App,
    Completed,
    EnqueueOpts,
    EventType,
    Kind,
    Periodic,
    Snooze,
    Subscription,
    Unique,
)
from weirkeeper.testing import (
    MemoryRuntime,
    StoppedClock,
    assert_enqueued,
    assert_not_enqueued,
    enqueued,
)

NOBODY = "tests.unit.test_memory:nobody"
APP = App(
    include_site=False,
    kinds=(
        Kind("a.job", "index", NOBODY, max_attempts=3, backoff=Backoff(base=10)),
        Kind("a.other", "notify", "no.such.module:handler"),
    ),
    event_types=(EventType("a.happened", "It happened.", "to what"),),
    subscriptions=(
        Subscription("a.told", ("a.*",), "notify", NOBODY, coalesce=True),
        Subscription("a.each", ("a.happened",), "notify", NOBODY),
    ),
)


def nobody(_ctx, _args, *_event):
    return None


def runtime(**more):
    return MemoryRuntime(APP, **more)


def test_a_deadline_is_a_moment_of_the_clock_that_handlers_have():
    left = []
    handlers = {"a.job": lambda ctx, args: left.append(ctx.deadline - time.monotonic())}
    engine = runtime(handlers=handlers)
    engine.clock.advance(86_400)
    engine.enqueue("a.job", {}, EnqueueOpts(timeout=30))
    engine.run_due()
    assert 0 < left[0] <= 30


def test_a_kind_without_a_database_is_given_none():
    sealed = App(include_site=False, kinds=(Kind("a.job", "index", NOBODY, database=False),))

    def ask(ctx, args):
        with ctx.connection():
            raise AssertionError("it has one")

    engine = MemoryRuntime(sealed, handlers={"a.job": ask}, connection=nullcontext)
    job = engine.enqueue("a.job", {})
    engine.run_due()
    assert "database=False" in (engine.get(job).attempts[0].error or "")


def test_an_event_is_waited_for_by_its_id_in_any_form():
    engine = runtime()
    event = engine.recorder.record("a.happened", subject="x/1")
    engine.run_due()
    job = engine.await_fanout(event, "a.each", 0)
    assert job
    assert engine.await_fanout(UUID(event), "a.each", 0) == job
    assert engine.await_fanout(event.upper(), "a.each", 0) == job


def test_the_first_tick_ever_was_not_missed():
    ticking = replace(APP, periodics=(Periodic("a.often", "a.job", every=60, missed="skip"),))
    engine = MemoryRuntime(ticking, handlers={"a.job": nobody})
    engine.start()
    engine.clock.advance(3600)
    assert engine.run_due() == 1
    engine.clock.advance(3600)
    assert engine.run_due() == 0, "now it has been"


def test_ticks_add_nothing_while_the_job_of_one_was_put_off():
    answers = iter([Snooze(300), None, None])
    ticking = replace(APP, periodics=(Periodic("a.often", "a.job", every=60),))
    engine = MemoryRuntime(ticking, handlers={"a.job": lambda ctx, args: next(answers)})
    engine.start()
    assert engine.run_due() == 1
    for _ in range(4):
        engine.clock.advance(60)
        assert engine.run_due() == 0
    engine.clock.advance(60)
    assert engine.run_due() == 1
    engine.clock.advance(60)
    assert engine.run_due() == 1
    assert len(engine.list()) == 2


def test_time_stands_still_until_it_is_told_to_go_on():
    failing = iter([ValueError("once"), None])

    def handler(ctx, args):
        error = next(failing)
        if error:
            raise error

    engine = runtime(handlers={"a.job": handler})
    job = engine.enqueue("a.job", {})
    assert engine.run_due() == 1
    assert engine.next_due_in() == 10
    assert engine.run_due() == 0
    engine.clock.advance(9.9)
    assert engine.run_due() == 0
    engine.clock.advance(0.1)
    assert engine.run_due() == 1
    assert engine.get(job).state == "completed"


def test_run_all_travels_in_time():
    engine = runtime(handlers={"a.job": lambda ctx, args: 1 / 0})
    job = engine.enqueue("a.job", {})
    began = engine.clock.wall()
    assert engine.run_all() == 3
    assert engine.get(job).state == "discarded"
    assert (engine.clock.wall() - began).total_seconds() == 30
    engine.enqueue("a.job", {})
    assert engine.run_all(max_seconds=15) == 2


def test_a_job_that_never_ends_is_noticed():
    engine = runtime(handlers={"a.job": lambda ctx, args: Snooze(0)})
    engine.enqueue("a.job", {})
    assert engine.run_due() == 1
    with pytest.raises(Conflict, match="never ends"):
        engine.run_all()


def test_a_handler_that_cannot_be_imported_fails_the_test_and_not_the_job():
    engine = runtime()
    job = engine.enqueue("a.other", {})
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=r"no\.such\.module"):
            engine.run_due()
    assert engine.get(job).state == "pending"


def test_a_replacement_for_an_unknown_kind_is_refused():
    with pytest.raises(Exception, match="declared kind"):
        runtime(handlers={"a.jop": nobody})


def test_what_ends_the_test_gives_the_job_back():
    def handler(ctx, args):
        raise KeyboardInterrupt

    engine = runtime(handlers={"a.job": handler})
    job = engine.enqueue("a.job", {})
    with pytest.raises(KeyboardInterrupt):
        engine.run_due()
    told = engine.get(job)
    assert (told.state, told.attempt, told.attempts[0].outcome) == ("pending", 0, "interrupted")


def test_a_handler_may_use_the_engine():
    def handler(ctx, args):
        if args["n"]:
            engine.enqueue("a.job", {"n": args["n"] - 1})
        return Completed(args["n"])

    engine = runtime(handlers={"a.job": handler})
    engine.enqueue("a.job", {"n": 4})
    assert engine.run_due() == 5
    assert [job.result for job in enqueued(engine, "a.job")] == [4, 3, 2, 1, 0]


def test_there_is_no_database_unless_one_is_given():
    def handler(ctx, args):
        with ctx.connection() as conn:
            return Completed(conn)

    engine = runtime(handlers={"a.job": handler})
    job = engine.enqueue("a.job", {})
    engine.run_due()
    assert DatabaseUnavailable.__name__ in engine.get(job).attempts[0].error

    engine = runtime(handlers={"a.job": handler}, connection=lambda: nullcontext("a connection"))
    job = engine.enqueue("a.job", {})
    engine.run_due()
    assert engine.get(job).result == "a connection"


def test_an_open_transaction_keeps_others_out():
    engine = runtime()
    opts = EnqueueOpts(unique=Unique())
    with engine.transaction() as tx:
        inside = engine.with_tx(tx)
        first = inside.enqueue("a.job", {"a": 1}, opts)
        assert inside.enqueue("a.job", {"a": 1}, opts) == first
        with pytest.raises(Conflict, match="open transaction") as error:
            engine.enqueue("a.job", {"a": 1}, opts)
        assert error.value.job_id == first
    assert engine.enqueue("a.job", {"a": 1}, opts) == first
    with pytest.raises(Conflict, match="ended"):
        inside.enqueue("a.job", {})


def test_another_kind_of_connection_is_not_followed():
    engine = runtime()
    engine.with_tx(object()).enqueue("a.job", {})
    assert_enqueued(engine, "a.job", times=1)


def test_events_become_jobs_when_they_commit():
    seen = []
    handlers = {
        name: lambda ctx, args, event: seen.append((ctx.kind, event.subject, event.data["n"]))
        for name in ("a.told", "a.each")
    }
    engine = runtime(handlers=handlers)
    with engine.transaction() as tx:
        recorder = engine.recorder.with_tx(tx)
        first = recorder.record("a.happened", subject="x", data={"n": 1}, owner_id="me")
        second = recorder.record("a.happened", subject="x", data={"n": 2})
        assert_not_enqueued(engine, "a.told")
    assert engine.await_fanout(first, "a.told", 0) is None  # the second stands for both
    job = engine.await_fanout(second, "a.told", 0)
    assert engine.get(job).args == {"event_id": second, "subject": "x"}
    engine.run_due()
    assert seen == [("a.each", "x", 1), ("a.told", "x", 2), ("a.each", "x", 2)]
    assert enqueued(engine, "a.each", {"event_id": first})[0].owner_id == "me"


def test_a_rolled_back_event_is_none():
    engine = runtime()

    def fails():
        with engine.transaction() as tx:
            engine.recorder.with_tx(tx).record("a.happened")
            engine.with_tx(tx).enqueue("a.job", {})
            raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert engine.list() == []
    assert engine.store.outbox == {}


def test_asserting():
    engine = runtime()
    engine.enqueue("a.job", {"to": {"name": "eve", "age": 3}, "n": [1, 2]})
    [job] = assert_enqueued(engine, "a.job", {"to": {"name": "eve"}, "n": [2]})
    assert job.args["to"]["age"] == 3
    assert_not_enqueued(engine, "a.job", {"to": {"name": "ada"}})
    with pytest.raises(
        AssertionError, match=r"expected 2 of a\.job; got 1; enqueued: a\.job \{'to'"
    ):
        assert_enqueued(engine, "a.job", times=2)
    with pytest.raises(AssertionError, match=r"expected at least one of a\.other"):
        assert_enqueued(engine, "a.other")


def test_asserting_options():
    engine = runtime()
    soon = engine.clock.wall() + timedelta(minutes=5)
    opts = EnqueueOpts(priority=1, run_at=soon, tags=("a", "b"), owner_id="eve", unique=Unique())
    first = engine.enqueue("a.job", {"n": 1}, opts)
    engine.enqueue("a.job", {"n": 2})
    said = {"priority": 1, "run_at": soon, "owner_id": "eve", "unique": Unique()}
    for name, value in said.items():
        [job] = assert_enqueued(engine, "a.job", times=1, **{name: value})
        assert job.id == first, name
    assert_enqueued(engine, "a.job", {"n": 1}, times=1, tags=("b",), **said)
    assert_enqueued(engine, "a.job", {"n": 2}, priority=2, max_attempts=job.max_attempts, tags=())
    assert_not_enqueued(engine, "a.job", tags=("a", "c"))
    assert_not_enqueued(engine, "a.job", {"n": 2}, priority=1)
    with pytest.raises(
        AssertionError, match=r"one of a\.job priority=3; .*\{'n': 1\} owner_id='eve'"
    ):
        assert_enqueued(engine, "a.job", priority=3)
    with pytest.raises(InvalidArguments, match=r"expected some of awaited, .*got prio;"):
        assert_enqueued(engine, "a.job", prio=1)


def test_a_clock_never_goes_back():
    clock = StoppedClock()
    with pytest.raises(Exception, match="0 s or more"):
        clock.advance(-1)
    with pytest.raises(Exception, match="time zone"):
        StoppedClock(clock.wall().replace(tzinfo=None))


def test_33_two_jobs_with_one_concurrency_key_never_run_at_once():
    keyed = EnqueueOpts(concurrency_key="k")
    ran = []

    def handler(ctx, args):
        ran.append(args["n"])
        engine.run_due()  # as another thread would meanwhile
        if args["n"] == 1:
            assert ran == [1, 3]
            told = engine.explain(second)
            assert (told.where, told.waits_for) == ("parked", "key")
            assert first in told.sentence

    engine = runtime(handlers={"a.job": handler})
    first = engine.enqueue("a.job", {"n": 1}, keyed)
    second = engine.enqueue("a.job", {"n": 2}, keyed)
    engine.enqueue("a.job", {"n": 3}, EnqueueOpts(concurrency_key="another"))
    engine.run_due()
    assert ran == [1, 3, 2]
    assert {job.state for job in engine.list()} == {"completed"}
