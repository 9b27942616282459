"""Weirkeeper: the one name that an application imports.

Stands above everything: it hands on the public names of `shared` and adds none of its own. It is
lazy (PEP 562), so that `python -m weirkeeper.child`, which may run in another interpreter than
ours, imports nothing but itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shared.app import App as App
    from shared.config.queues import Queue as Queue
    from shared.events.subscriptions import Subscription as Subscription
    from shared.events.type import EventType as EventType
    from shared.jobs.kinds import Kind as Kind
    from shared.jobs.outcomes import Completed as Completed
    from shared.jobs.outcomes import Discard as Discard
    from shared.jobs.outcomes import Retry as Retry
    from shared.jobs.outcomes import Snooze as Snooze
    from shared.jobs.port import EnqueueOpts as EnqueueOpts

_HOME = {
    "App": "shared.app",
    "Completed": "shared.jobs.outcomes",
    "Discard": "shared.jobs.outcomes",
    "EnqueueOpts": "shared.jobs.port",
    "EventType": "shared.events.type",
    "Kind": "shared.jobs.kinds",
    "Queue": "shared.config.queues",
    "Retry": "shared.jobs.outcomes",
    "Snooze": "shared.jobs.outcomes",
    "Subscription": "shared.events.subscriptions",
}

__all__ = sorted(_HOME)  # noqa: PLE0605  (kept equal to the table above by construction)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _HOME:
        raise AttributeError(f"module 'weirkeeper' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
