"""Hooks around a job: what an application hangs around every run, for error trackers and traces.

Named in `App(hooks=…)` as "module:function"; each is called with the job's context and returns a
context manager, entered before the handler and left after it. Used by whatever runs handlers (a
child's runner, the memory adapter). An error in a hook is logged and changes nothing: how the run
ended is settled before a hook hears of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from shared.errors import ConfigurationError
from shared.importing import NotLoaded, load
from shared.jobs.context import Context
from shared.jobs.trace import carry, put_down

Hook = Callable[[Context], AbstractContextManager[Any]]


def load_hooks(names: Sequence[str]) -> tuple[Hook, ...]:
    """Import hooks, and see that they can be called.

    Raises:
        ConfigurationError: one cannot be imported, or takes other parameters, or forgot to be a
            context manager: nobody would hear of it until something goes wrong.
    """
    return tuple(_load(name) for name in names)


def _load(name: str) -> Hook:
    module, _, function = name.partition(":")
    try:
        found = load(module, function)
    except NotLoaded as failure:
        problem = f"correct it, or PYTHONPATH ({failure})"
        raise ConfigurationError.of(
            "App: hooks", '"module:function", importable', name, problem
        ) from failure.__cause__
    if not callable(found):
        raise ConfigurationError.of(f"hook {name}", "a function", found, "name a function")
    if any(is_one(found) for is_one in _NO_MANAGER):
        raise ConfigurationError.of(
            f"hook {name}",
            "a function that returns a context manager",
            "a generator or async function",
            "decorate it with contextlib.contextmanager",
        )
    _check_parameters(name, found)
    hook: Hook = found
    return hook


_NO_MANAGER = (
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
    inspect.iscoroutinefunction,
)


def _check_parameters(name: str, found: Any) -> None:
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # of C, without a signature
        return
    try:
        signature.bind("ctx")
    except TypeError as error:
        raise ConfigurationError.of(
            f"hook {name}", "parameters (ctx)", str(signature), f"correct it ({error})"
        ) from error


class Around:
    """What stands around one run: the job's trace, and the hooks.

    Args:
        hooks: entered in this order, left in the opposite one.
        ctx: of the job.
        stop: what a request to stop raises, in a hook as well: it is not the hook's failure.
    """

    def __init__(self, hooks: Sequence[Hook], ctx: Context, stop: type[BaseException]) -> None:
        self._stop = stop
        self._hooks = hooks
        self.ctx = ctx
        self._entered: list[AbstractContextManager[Any]] = []
        self._token = carry(ctx.trace)

    def begin(self) -> None:
        """Enter the hooks; one that fails is left out."""
        for hook in self._hooks:
            try:
                manager = hook(self.ctx)
                manager.__enter__()
            except self._stop:
                raise
            except BaseException:
                self.ctx.log.exception("hook %s failed before the job", _told(hook))
            else:
                self._entered.append(manager)

    def end(self, outcome: str, error: BaseException | None = None) -> None:
        """Leave the hooks.

        Args:
            outcome: how the run ended; hooks see it as `ctx.outcome`.
            error: what the handler raised.
        """
        self.ctx._settle(outcome)  # noqa: SLF001  (not for handlers)
        request: BaseException | None = None
        while self._entered:
            manager = self._entered.pop()
            try:
                manager.__exit__(
                    None if error is None else type(error),
                    error,
                    None if error is None else error.__traceback__,
                )
            except self._stop as asked:
                request = None if asked is error else asked
            except BaseException as failed:
                if failed is not error:
                    self.ctx.log.exception("hook %s failed after the job", _told(manager))
        put_down(self._token)
        if request is not None:
            raise request


def _told(what: object) -> str:
    return str(getattr(what, "__qualname__", type(what).__qualname__))
