"""Finding the functions that kinds name: imported once, in the fork server, for one queue.

Before this: the application's declarations. After it: the runner calls what was found. A handler
that cannot be imported, or called with what it will get, refuses the whole process, with its name:
else every job would fail for the same reason, as often as it may.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shared.app import App
from shared.errors import ConfigurationError
from shared.jobs.handler import load_handler
from shared.jobs.kinds import Kind
from shared.jobs.limits import Limits


@dataclass(frozen=True, slots=True)
class Handler:
    """A kind's function; one of a subscription also gets the event.

    Attributes:
        away: exceptions which mean that what it depends on is away.
        put_off: seconds until the next try then.
        limits: what one run may use.
    """

    function: Callable[..., Any]
    wants_event: bool
    away: tuple[type[Exception], ...] = ()
    put_off: float = 0.0
    limits: Limits | None = None


def load_handlers(app: App, queue: str) -> dict[str, Handler]:
    """Import the handlers of a queue's kinds.

    Raises:
        ConfigurationError: one cannot be imported, is no function, or takes other parameters.
    """
    subscribed = {subscription.name for subscription in app.subscriptions}
    kinds = [k for k in app.all_kinds.values() if k.queue == queue and k.handler]
    return {kind.name: _load(kind, wants_event=kind.name in subscribed) for kind in kinds}


def load_one(app: App, kind: str) -> Handler:
    """Import the handler of one kind, which no subscription declared.

    Raises:
        ConfigurationError: no such kind, or as of `load_handlers`.
    """
    if kind not in app.all_kinds:
        raise ConfigurationError.of("kind", "one that is declared", kind, "declare it")
    return _load(app.all_kinds[kind], wants_event=False)


def _load(kind: Kind, *, wants_event: bool) -> Handler:
    function = load_handler(kind, wants_event=wants_event)
    outage = kind.outage
    return Handler(
        function,
        wants_event,
        away=() if outage is None else outage.load(kind.name),
        put_off=0.0 if outage is None else outage.delay,
        limits=kind.limits,
    )
