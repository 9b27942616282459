"""PORT Handler: what a kind names, and how the function is found.

Before this: the application's declarations. After it: whatever runs handlers (a queue process's
children, the memory adapter) calls the function as `function(ctx, args)`; idempotent by contract,
since every job runs at least once.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from shared.errors import ConfigurationError
from shared.jobs.kinds import Kind

Handler = Callable[..., Any]


def load_handler(kind: Kind) -> Handler:
    """Import the function that a kind names.

    Raises:
        ConfigurationError: it cannot be imported, or is no function.
    """
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
    function: Handler = found
    return function
