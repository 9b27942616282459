"""An application whose queues `a` and `b` are served by one process in tests."""

from __future__ import annotations

from shared.app import App
from shared.config.queues import Queue
from shared.jobs.kinds import Kind
from tests.support.app import EFFECTS, SOON

app = App(
    include_site=False,
    environment=(EFFECTS,),
    queues=(
        Queue("a", children=3, timeout=60, poll=0.1, awaited=True),
        Queue("b", children=2, timeout=60, poll=0.1, awaited=True),
    ),
    kinds=tuple(
        Kind(f"t.{queue}_{name}", queue, f"tests.support.app:{name}", max_attempts=3, backoff=SOON)
        for queue in ("a", "b")
        for name in ("ok", "sleep", "stuck", "die")
    ),
)
