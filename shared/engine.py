"""What the engine itself runs, declared like any application's: retention, verify, replays.

Read by `shared.app.load_app`, which merges it into every application. All of it runs on the
maintenance queue; handlers are named, not imported: they live in workers.handlers.maintenance.
"""

from __future__ import annotations

from shared.app import App
from shared.jobs.kinds import Kind
from shared.jobs.periodic import Periodic

HOUR = 3600.0
HANDLERS = "workers.handlers.maintenance"


def _kind(task: str) -> Kind:
    return Kind(f"weirkeeper.{task}", queue="maintenance", handler=f"{HANDLERS}.{task}:handle")


def _hourly(task: str) -> Periodic:
    return Periodic(f"weirkeeper.{task}", f"weirkeeper.{task}", every=HOUR)


app = App(
    include_site=False,
    kinds=(
        _kind("prune_jobs"),
        _kind("prune_events"),
        _kind("prune_records"),
        _kind("discard_unknown"),
        _kind("verify"),
        _kind("replay"),
    ),
    periodics=(
        _hourly("prune_jobs"),
        _hourly("prune_events"),
        _hourly("prune_records"),
        _hourly("discard_unknown"),
        Periodic("weirkeeper.verify", "weirkeeper.verify", every=24 * HOUR),
    ),
)
