"""Applications that a queue process must refuse."""

from __future__ import annotations

from weirkeeper import App, EventType, Kind, Queue, Subscription

_queues = (Queue("t"),)
no_module = App(queues=_queues, kinds=(Kind("t.ok", "t", "nowhere.handlers:ok"),))
starts_thread = App(queues=_queues, kinds=(Kind("t.ok", "t", "tests.support.starts_thread:ok"),))
too_few = App(
    queues=_queues,
    event_types=(EventType("t.happened", "Something happened.", "what it happened to"),),
    subscriptions=(Subscription("t.event", ("t.happened",), "t", "tests.support.app:ok"),),
)
