"""An application with a job of any length in every queue, and one that starts programs: for stops."""

from __future__ import annotations

from shared.config.queues import QUEUES
from weirkeeper import App, Kind

app = App(
    include_site=False,
    environment=("TEST_*",),
    kinds=(
        *(
            Kind(f"long.{queue.name}", queue.name, "tests.support.app:sleep", timeout=60)
            for queue in QUEUES
        ),
        Kind("fork.index", "index", "tests.support.app:fork", timeout=600, max_attempts=1),
    ),
)
