"""What a handler's answer means, and what it may not answer."""

from __future__ import annotations

import math
from asyncio import CancelledError
from contextlib import closing, nullcontext

import pytest

from shared.errors import DatabaseUnavailable, InvalidArguments
from shared.events.event import Event
from shared.jobs.answers import LONGEST_DELAY
from shared.jobs.outcomes import Completed, Discard, Retry, Snooze
from shared.services.coroutines import Coroutines
from workers.handlers.registry import Handler
from workers.pool.child import Stopped
from workers.runner import AGAIN, Runner, Surroundings, outcome_of

JOB = {
    "id": "7", "run": 2, "attempt": 1, "max_attempts": 5, "kind": "t.ok", "timeout_ms": 1000,
    "event_id": None, "owner_id": "me", "trace": None, "args": {"n": 1},
}  # fmt: skip


class Session:
    """No database."""

    def __init__(self, event=None):
        self.event = event
        self.renewed = 0

    def renew(self):
        self.renewed += 1

    def connection(self, pristine: bool = False):
        return nullcontext("a connection")

    def load_event(self, event_id):
        return self.event


def run(function, session=None, *, wants_event=False, job=None, asked=False, report=print):
    handlers = {"t.ok": Handler(function, wants_event)}
    with closing(Coroutines()) as coroutines:
        around = Surroundings(session or Session(), lambda: asked, report, coroutines)
        return Runner(handlers, (), around)(job or JOB)


@pytest.mark.parametrize("answer", [Completed(1), Retry("no"), ValueError("late")])
def test_what_a_request_took_is_told_however_the_job_ends(answer):
    def handle(ctx, _):
        ctx._called(0.25)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert run(handle).outside == 0.25
    assert run(lambda *_: Completed(1)).outside is None


@pytest.mark.parametrize(
    ("answer", "outcome", "delay", "error", "result"),
    [
        (None, "completed", None, None, b""),
        (Completed(), "completed", None, None, b""),
        (Completed([1, "é"]), "completed", None, None, '[1,"é"]'.encode()),
        (Completed(0), "completed", None, None, b"0"),
        (Snooze(3), "snoozed", 3.0, None, b""),
        (Snooze(1e12), "snoozed", LONGEST_DELAY, None, b""),
        (Discard("a\0b"), "discarded", None, "a\ufffdb", b""),
        (Retry("later"), "failed", None, "later", b""),
        (Retry("later", 0), "failed", 0.0, "later", b""),
    ],
)
def test_answers(answer, outcome, delay, error, result):
    told = outcome_of(answer, "t.ok")
    assert (told.outcome, told.delay, told.error, bytes(told.result)) == (
        outcome,
        delay,
        error,
        result,
    )


@pytest.mark.parametrize(
    "answer",
    [
        42, "done", {"a": 1}, Snooze(-1), Snooze(math.nan), Snooze(math.inf), Snooze("1"),
        Retry("x", -2), Completed("x" * 40_000), Completed(math.nan), Completed({1: 2}),
        Completed("\ud800"),
    ],
)  # fmt: skip
def test_what_is_no_answer_fails(answer):
    with pytest.raises(InvalidArguments):
        outcome_of(answer, "t.ok")


def test_the_context_tells_the_job():
    seen = []
    run(lambda ctx, args: seen.append((ctx, args)))
    ctx, args = seen[0]
    assert (ctx.job_id, ctx.run, ctx.attempt, ctx.max_attempts) == ("7", 2, 2, 5)
    assert (ctx.kind, ctx.owner_id, args) == ("t.ok", "me", {"n": 1})
    assert not ctx.cancelled()
    with ctx.connection() as conn:
        assert conn == "a connection"


@pytest.mark.parametrize(
    "error",
    [ValueError("no\0"), SystemExit(3), KeyboardInterrupt(), RecursionError(), MemoryError()],
)
@pytest.mark.parametrize("waits", [False, True])
def test_whatever_is_raised_is_a_failure(error, waits):
    def handler(_ctx, _args):
        raise error

    async def async_handler(_ctx, _args):
        handler(_ctx, _args)

    told = run(async_handler if waits else handler)
    assert told.outcome == "failed"
    assert told.error.startswith(type(error).__name__)
    assert "\0" not in told.error
    assert "in handler" in told.stack


def test_a_stop_passes_through():
    def handler(_ctx, _args):
        raise Stopped

    with pytest.raises(Stopped):
        run(handler)


def test_a_subscriber_gets_the_event():
    event = Event("e", "t.happened", None, "s", {}, "2026-01-01T00:00:00Z")
    seen = []
    job = {**JOB, "event_id": "e"}
    run(lambda *all_: seen.append(all_[2]), Session(event), wants_event=True, job=job)
    assert seen == [event]


def test_a_pruned_event_is_discarded():
    told = run(lambda *_: None, wants_event=True, job={**JOB, "event_id": "e"})
    assert (told.outcome, told.error) == ("discarded", "event e was pruned before this job ran")


def test_a_job_whose_event_cannot_be_read_now_is_put_off_and_spends_no_try():
    class Away(Session):
        def load_event(self, event_id):
            raise DatabaseUnavailable("away")

    told = run(lambda *_: None, Away(), wants_event=True, job={**JOB, "event_id": "e"})
    assert (told.outcome, told.delay) == ("snoozed", AGAIN)


async def echo(_ctx, args):
    return Completed(args)


def test_an_async_handler_answers_like_any_other():
    assert bytes(run(echo).result) == b'{"n":1}'
    event = Event("e", "t.happened", None, "s", {}, "2026-01-01T00:00:00Z")

    async def subscriber(_ctx, _args, given):
        return Completed(given.id)

    told = run(subscriber, Session(event), wants_event=True, job={**JOB, "event_id": "e"})
    assert bytes(told.result) == b'"e"'


def test_an_async_handler_fails_like_any_other():
    async def handler(_ctx, _args):
        raise ValueError("no")

    told = run(handler)
    assert (told.outcome, told.error) == ("failed", "ValueError: no")
    assert "in handler" in told.stack


async def cancelled(_ctx, _args):
    raise CancelledError


def test_a_cancelled_coroutine_was_stopped_if_that_was_asked_for():
    with pytest.raises(Stopped):
        run(cancelled, asked=True)
    assert run(cancelled).outcome == "failed"


def test_what_a_generator_function_returns_is_no_answer():
    def hidden(_ctx, _args):
        return (n for n in range(3))

    assert "got generator" in run(hidden).error


def test_progress_is_reported_as_numbers_and_nothing_else_is_taken():
    told = []
    run(lambda ctx, _: ctx.progress(3, 10), report=lambda *given: told.append(given))
    run(lambda ctx, _: ctx.progress(0.5), report=lambda *given: told.append(given))
    assert told == [(3.0, 10.0), (0.5, None)]
    for wrong in ((-1, None), (math.nan, None), (math.inf, 1), (1, -1), ("1", 2), (True, 2)):
        done = run(lambda ctx, _, wrong=wrong: ctx.progress(*wrong))
        assert done.error.startswith("InvalidArguments: progress: expected numbers"), wrong


def test_a_session_is_renewed_after_each_job_whatever_became_of_it():
    session = Session()
    run(lambda ctx, args: None, session)
    assert session.renewed == 1
    run(lambda ctx, args: 1 / 0, session)
    assert session.renewed == 2
