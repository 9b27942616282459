"""An application whose queue has a name that no file, program or channel could carry."""

from __future__ import annotations

from weirkeeper import App, Queue

app = App(queues=(Queue("q" * 70),))
