"""An application with a job of any length in every queue: for stops of whole stacks."""

from __future__ import annotations

from shared.config.queues import QUEUES
from weirkeeper import App, Kind

app = App(
    include_site=False,
    environment=("TEST_*",),
    kinds=tuple(
        Kind(f"long.{queue.name}", queue.name, "tests.support.app:sleep", timeout=60)
        for queue in QUEUES
    ),
)
