"""Finding handlers: what could never be called is refused at once, not ten times a job."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType

import pytest

from shared.app import App
from shared.errors import ConfigurationError
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.jobs.kinds import Kind
from workers.handlers.registry import load_handlers

PAID = EventType("order.paid", "An order was paid.", "order/<number>")


@pytest.fixture
def load(monkeypatch):
    """Loads one function as the handler of a kind, or of a subscription."""

    def loaded(function, *, subscribed: bool):
        module = ModuleType("shop")
        module.handler = function
        monkeypatch.setitem(sys.modules, "shop", module)
        name, queue, handler = "shop.work", "notify", "shop:handler"
        if subscribed:
            app = App(
                event_types=(PAID,),
                subscriptions=(Subscription(name, ("order.*",), queue, handler),),
            )
        else:
            app = App(kinds=(Kind(name, queue, handler),))
        return load_handlers(app.check(), queue)[name]

    return loaded


@pytest.mark.parametrize(
    ("function", "subscribed"),
    [
        (lambda ctx, args: None, False),
        (lambda ctx, args, event=None: None, False),
        (lambda ctx, args, event=None: None, True),
        (lambda ctx, args, event: None, True),
        (lambda *given: None, False),
        (lambda *given: None, True),
        (partial(lambda shop, ctx, args: None, "shop"), False),
        (type("Callable", (), {"__call__": lambda self, ctx, args: None})(), False),
        (divmod, False),
        (dict.fromkeys, False),
    ],
)
def test_what_can_be_called_is_taken(load, function, subscribed):
    found = load(function, subscribed=subscribed)
    assert (found.function, found.wants_event) == (function, subscribed)


@pytest.mark.parametrize(
    ("function", "subscribed", "expected", "got"),
    [
        (lambda ctx: None, False, "(ctx, args)", "(ctx)"),
        (lambda ctx, args, event: None, False, "(ctx, args)", "(ctx, args, event)"),
        (lambda ctx, args, *, day: None, False, "(ctx, args)", "(ctx, args, *, day)"),
        (lambda ctx, args: None, True, "(ctx, args, event)", "(ctx, args)"),
        (lambda: None, True, "(ctx, args, event)", "()"),
    ],
)
def test_what_cannot_be_called_is_refused_in_one_line(load, function, subscribed, expected, got):
    with pytest.raises(ConfigurationError) as caught:
        load(function, subscribed=subscribed)
    said = str(caught.value)
    assert said.startswith(
        f"kind shop.work: handler shop:handler: expected parameters {expected}; got {got!r}; "
    )
    assert "\n" not in said


def generates(ctx, args):
    yield


async def generates_too(ctx, args):
    yield


async def answers(ctx, args):
    return None


class Generates:
    def __call__(self, ctx, args):
        yield


@pytest.mark.parametrize("function", [generates, generates_too, partial(generates), Generates()])
def test_a_generator_is_refused_for_it_would_run_nothing(load, function):
    with pytest.raises(ConfigurationError) as caught:
        load(function, subscribed=False)
    assert str(caught.value) == (
        "kind shop.work: handler: expected a function, or an async one; got 'shop:handler, a "
        "generator function'; return the outcome instead of yielding"
    )


def test_an_async_function_is_taken(load):
    assert load(answers, subscribed=False).function is answers
