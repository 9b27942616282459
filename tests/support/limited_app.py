"""An application with limits: a queue with a cap, a kind whose owners take turns, one with a rate."""

from __future__ import annotations

from weirkeeper import App, Kind, Queue, Rate

SLEEP = "tests.support.app:sleep"
CAP = 3
RATE = Rate(5, per=1.0)
app = App(
    include_site=False,
    environment=("TEST_*",),
    queues=(Queue("v", children=3, awaited=True, cap=CAP), Queue("w", children=2, awaited=True)),
    kinds=(
        Kind("v.capped", "v", SLEEP),
        Kind("w.turns", "w", SLEEP, fair=True),
        Kind("w.rated", "w", SLEEP, rate=RATE),
    ),
)
