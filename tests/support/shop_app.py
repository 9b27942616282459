"""An application whose handlers run in its own interpreter, named by SHOP_PYTHON."""

from __future__ import annotations

import os

from shared.app import App
from shared.backoff import Backoff
from shared.config.queues import Queue
from shared.jobs.kinds import Kind
from tests.support.app import EFFECTS

QUICK = Backoff(steps=(0.05,))
RUN = [os.environ.get("SHOP_PYTHON", "python3"), "-m", "weirkeeper.child", "shop.handlers"]
ENVIRONMENT = ["SHOP_EFFECTS", "SHOP_COLOUR=green"]
KINDS = ("look", "answer", "sleep", "later", "unknown")


def kinds(queue: str, prefix: str = "shop", **more: object) -> tuple[Kind, ...]:
    return tuple(
        Kind(f"{prefix}.{name}", queue, max_attempts=3, timeout=20, backoff=QUICK, **more)  # type: ignore[arg-type]
        for name in KINDS
    )


own = App(
    queues=(Queue("shop", children=2, timeout=20),),
    kinds=(
        *kinds("shop", command=RUN, environment=ENVIRONMENT),
        Kind("t.ours", "shop", "tests.support.app:ok"),
        Kind("t.gone", "shop", command=["/nowhere/at/all"], max_attempts=1),
    ),
    include_site=False,
    environment=(EFFECTS,),
)
lasting = App(
    queues=(Queue("shop", children=3, timeout=20, command=RUN, environment=ENVIRONMENT),),
    kinds=kinds("shop"),
    include_site=False,
)
whole = App(  # commands that can be found, and variables that are set
    queues=(Queue("shop", command=["sh", "-c", "exit"], environment=["PATH", "SHOP_KEY=secret"]),),
    kinds=kinds("shop"),
    include_site=False,
)
unset = App(
    queues=(Queue("shop", command=["sh"], environment=["SHOP_IS_NOT_SET"]),),
    kinds=kinds("shop"),
    include_site=False,
)
