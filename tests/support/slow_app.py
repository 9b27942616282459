"""An application whose handlers take long to import."""

from __future__ import annotations

from weirkeeper import App, Kind, Queue

app = App(queues=(Queue("t"),), kinds=(Kind("t.ok", "t", "tests.support.slow_handlers:ok"),))
