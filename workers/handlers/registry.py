"""Finding the functions that kinds name: imported once, in the fork server, for one queue.

Before this: the application's declarations. After it: the runner calls what was found. A handler
that cannot be imported, or called with what it will get, refuses the whole process, with its name:
else every job would fail for the same reason, as often as it may.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.app import App
from shared.errors import ConfigurationError
from shared.jobs.kinds import Kind

GIVEN = ("ctx", "args")
EVENT = "event"  # given to a subscription's handler as well


@dataclass(frozen=True, slots=True)
class Handler:
    """A kind's function; one of a subscription also gets the event."""

    function: Callable[..., Any]
    wants_event: bool


def load_handlers(app: App, queue: str) -> dict[str, Handler]:
    """Import the handlers of a queue's kinds.

    Raises:
        ConfigurationError: one cannot be imported, is no function, or takes other parameters.
    """
    subscribed = {subscription.name for subscription in app.subscriptions}
    return {
        kind.name: _handler(kind, wants_event=kind.name in subscribed)
        for kind in app.all_kinds.values()
        if kind.queue == queue
    }


def _handler(kind: Kind, *, wants_event: bool) -> Handler:
    function = _function(kind)
    given = (*GIVEN, EVENT) if wants_event else GIVEN
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C, without a signature: its first call will tell
        return Handler(function, wants_event)
    try:
        signature.bind(*given)
    except TypeError as error:
        raise ConfigurationError.of(
            f"kind {kind.name}: handler {kind.handler}",
            f"parameters ({', '.join(given)})",
            str(signature),
            f"correct it ({error})",
        ) from error
    return Handler(function, wants_event)


def _function(kind: Kind) -> Callable[..., Any]:
    module, _, name = kind.handler.partition(":")
    try:
        found: Any = getattr(importlib.import_module(module), name)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise ConfigurationError.of(
            f"kind {kind.name}: handler",
            f"module {module}, importable, with {name}",
            kind.handler,
            f"correct it, or PYTHONPATH ({type(error).__name__}: {error})",
        ) from error
    if not callable(found):
        raise ConfigurationError.of(
            f"kind {kind.name}: handler", "a function", found, "name a function"
        )
    function: Callable[..., Any] = found
    return function
