"""Applications that a queue process must refuse."""

from __future__ import annotations

from weirkeeper import App, Kind, Queue

_queues = (Queue("t"),)
no_module = App(queues=_queues, kinds=(Kind("t.ok", "t", "nowhere.handlers:ok"),))
starts_thread = App(queues=_queues, kinds=(Kind("t.ok", "t", "tests.support.starts_thread:ok"),))
