"""An application whose jobs wait, each for a good reason, while children are free."""

from __future__ import annotations

from weirkeeper import App, Kind, Queue, Rate

SLEEP = "tests.support.app:sleep"
app = App(
    include_site=False,
    environment=("TEST_*",),
    queues=(
        Queue("free", children=3, timeout=300, awaited=True),
        Queue("capped", children=2, timeout=300, awaited=True, cap=1),
        Queue("halted", children=1, awaited=True),
    ),
    kinds=(
        Kind("w.paused", "free", SLEEP),
        Kind("w.quarantined", "free", SLEEP),
        Kind("w.locked", "free", SLEEP),
        Kind("w.keyed", "free", SLEEP, max_per_key=1),
        Kind("w.rated", "free", SLEEP, rate=Rate(1, per=3600)),
        Kind("w.capped", "capped", SLEEP),
        Kind("w.halted", "halted", SLEEP),
    ),
)
