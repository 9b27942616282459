"""PORT Handler: what a kind names, and how the function is found.

Before this: the application's declarations. After it: whatever runs handlers (a queue process's
children, the memory adapter) calls the function as `function(ctx, args)`, and runs what an async
one returns; idempotent by contract, since every job runs at least once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from shared.errors import ConfigurationError
from shared.importing import NotLoaded, load
from shared.jobs.kinds import Kind

Handler = Callable[..., Any]
GIVEN = ("ctx", "args")
EVENT = "event"  # given to a subscription's handler as well


def load_handler(kind: Kind, *, wants_event: bool) -> Handler:
    """Import the function that a kind names, and see that it takes what it will be given.

    Args:
        kind: names the function.
        wants_event: it is a subscription's, called as `function(ctx, args, event)`.

    Raises:
        ConfigurationError: it cannot be imported, is no function, or takes other parameters: every
            job would fail for the same reason.
    """
    if not kind.handler:
        raise ConfigurationError.of(
            f"kind {kind.name}: handler",
            "a function, where no command can be started",
            "none",
            "give one for the test: MemoryRuntime(handlers={…})",
        )
    function = _function(kind)
    if _yields(function):
        raise ConfigurationError.of(
            f"kind {kind.name}: handler",
            "a function, or an async one",
            f"{kind.handler}, a generator function",
            "return the outcome instead of yielding",
        )
    given = (*GIVEN, EVENT) if wants_event else GIVEN
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of C, without a signature: its first call will tell
        return function
    try:
        signature.bind(*given)
    except TypeError as error:
        raise ConfigurationError.of(
            f"kind {kind.name}: handler {kind.handler}",
            f"parameters ({', '.join(given)})",
            str(signature),
            f"correct it ({error})",
        ) from error
    return function


def _yields(function: Any) -> bool:
    """Whether calling it runs nothing: it makes a generator."""
    return any(
        inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found)
        for found in (function, function.__call__)
    )


def _function(kind: Kind) -> Handler:
    module, _, name = kind.handler.partition(":")
    try:
        found = load(module, name)
    except NotLoaded as failure:
        raise ConfigurationError.of(
            f"kind {kind.name}: handler",
            f"module {module}, importable, with {name}",
            kind.handler,
            f"correct it, or PYTHONPATH ({failure})",
        ) from failure.__cause__
    if not callable(found):
        raise ConfigurationError.of(
            f"kind {kind.name}: handler", "a function", found, "name a function"
        )
    function: Handler = found
    return function
