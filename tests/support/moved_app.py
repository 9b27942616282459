"""Two releases of an application: a kind lies in queue `old` in the first, in `new` in the second."""

from __future__ import annotations

from shared.app import App
from shared.config.queues import Queue
from shared.jobs.kinds import Kind
from tests.support.app import EFFECTS, SOON


def release(queue: str, *, drops: bool = False) -> App:
    """One of them; `drops` = the queue that it came from is declared no more."""
    queues = [Queue(n, children=1, timeout=60, poll=0.1, awaited=True) for n in ("old", "new")]
    kinds = [
        Kind(f"t.{name}", queue, f"tests.support.app:{name}", max_attempts=3, backoff=SOON)
        for name in ("ok", "sleep")
    ]
    return App(
        include_site=False,
        environment=(EFFECTS,),
        queues=tuple(queues[1:] if drops else queues),
        kinds=tuple(kinds),
    )


before, after, later = release("old"), release("new"), release("new", drops=True)
