"""Hooks around a job: what they see, in which order, and that their errors change nothing."""

from __future__ import annotations

import logging
import sys
from contextlib import ExitStack, closing, contextmanager
from types import ModuleType

import pytest

from shared.errors import ConfigurationError
from shared.jobs.hooks import load_hooks
from shared.jobs.outcomes import Discard, Retry, Snooze
from shared.jobs.trace import carried
from shared.services.coroutines import Coroutines
from tests.unit.test_runner import JOB, Session
from workers.handlers.registry import Handler
from workers.pool.child import Stopped
from workers.runner import Runner, Surroundings


def run(function, *hooks, away=(), job=JOB):
    with closing(Coroutines()) as coroutines:
        handlers = {"t.ok": Handler(function, wants_event=False, away=away, put_off=5.0)}
        around = Surroundings(Session(), lambda: False, print, coroutines)
        return Runner(handlers, hooks, around)(job)


class Watch:
    """A hook that notes what it sees."""

    def __init__(self, name="w"):
        self.seen = []
        self.name = name

    @contextmanager
    def __call__(self, ctx):
        self.seen.append(("begin", ctx.outcome))
        try:
            yield
        except BaseException as error:
            self.seen.append((ctx.outcome, error))
            raise
        self.seen.append((ctx.outcome, None))


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (None, "completed"),
        (Snooze(1), "snoozed"),
        (Discard("no"), "discarded"),
        (Retry("no"), "failed"),
    ],
)
def test_a_hook_sees_how_a_run_ended(answer, outcome):
    watch = Watch()
    assert run(lambda *_: answer, watch).outcome == outcome
    assert watch.seen == [("begin", None), (outcome, None)]


def test_a_hook_sees_what_was_raised():
    watch, error = Watch(), ValueError("no")

    def fail(_ctx, _args):
        raise error

    assert run(fail, watch).outcome == "failed"
    assert watch.seen == [("begin", None), ("failed", error)]


def test_a_hook_sees_a_result_that_cannot_be_stored():
    watch = Watch()
    assert run(lambda *_: 42, watch).outcome == "failed"
    assert "got int" in str(watch.seen[1][1])


def test_a_hook_sees_an_outage_as_a_snooze():
    watch, error = Watch(), ConnectionRefusedError("no")

    def fail(_ctx, _args):
        raise error

    told = run(fail, watch, away=(ConnectionError,))
    assert (told.outcome, told.delay, told.error) == ("snoozed", 5.0, "ConnectionRefusedError: no")
    assert watch.seen[1] == ("snoozed", error)


def test_a_hook_sees_a_stop_and_the_stop_goes_on():
    watch, stopped = Watch(), Stopped()

    def stop(_ctx, _args):
        raise stopped

    with pytest.raises(Stopped) as caught:
        run(stop, watch)
    assert caught.value is stopped
    assert watch.seen[1] == ("stopped", stopped)


def test_hooks_are_left_in_the_opposite_order():
    order = []

    def named(name):
        @contextmanager
        def hook(_ctx):
            order.append(f"{name} in")
            yield
            order.append(f"{name} out")

        return hook

    run(lambda *_: order.append("job"), named("a"), named("b"))
    assert order == ["a in", "b in", "job", "b out", "a out"]


@pytest.mark.parametrize("error", [RuntimeError("hook"), SystemExit("hook"), KeyboardInterrupt()])
def test_errors_in_hooks_are_logged_and_change_nothing(caplog, error):
    @contextmanager
    def before(_ctx):
        raise error
        yield

    @contextmanager
    def after(_ctx):
        yield
        raise error

    def nothing(_ctx):
        return None

    watch = Watch()
    with caplog.at_level(logging.ERROR):
        assert run(lambda *_: None, before, after, nothing, watch).outcome == "completed"
    assert watch.seen[-1] == ("completed", None)
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert sum("failed before the job" in line for line in said) == 2
    assert sum("failed after the job" in line for line in said) == 1
    assert all(record.job == "7" for record in caplog.records)


def test_a_hook_that_swallows_an_error_does_not_complete_the_job():
    class Swallows(ExitStack):
        def __exit__(self, *_):
            return True

    def fail(_ctx, _args):
        raise ValueError("no")

    assert run(fail, lambda _ctx: Swallows()).outcome == "failed"


def test_a_stop_inside_a_hook_is_a_stop():
    @contextmanager
    def slow(_ctx):
        yield
        raise Stopped

    watch = Watch()
    with pytest.raises(Stopped):
        run(lambda *_: None, watch, slow)
    assert watch.seen[-1] == ("completed", None)  # the others are left all the same


def test_the_trace_of_a_job_is_carried_on_inside_it():
    seen = []

    def handler(ctx, _args):
        seen.append((ctx.trace, carried(None), carried("own")))

    run(handler, job={**JOB, "trace": "00-abc-def-01"})
    assert seen == [("00-abc-def-01", "00-abc-def-01", "own")]
    assert carried(None) is None


async def _coroutine(_ctx): ...


def _generator(_ctx):
    yield


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (_generator, "decorate it with contextlib.contextmanager"),
        (_coroutine, "decorate it with contextlib.contextmanager"),
        (lambda: None, "expected parameters (ctx)"),
        (17, "expected a function"),
    ],
)
def test_what_is_no_hook_is_refused_in_one_line(monkeypatch, hook, said):
    module = ModuleType("shop")
    module.hook = hook
    monkeypatch.setitem(sys.modules, "shop", module)
    with pytest.raises(ConfigurationError) as caught:
        load_hooks(["shop:hook"])
    assert said in str(caught.value)
    assert "shop:hook" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_hook_that_cannot_be_imported_is_refused():
    with pytest.raises(ConfigurationError, match=r"App: hooks.*nowhere:hook.*ModuleNotFoundError"):
        load_hooks(["nowhere:hook"])
