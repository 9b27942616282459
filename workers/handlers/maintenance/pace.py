"""How long a handler of maintenance goes on: in batches, until little of its time is left.

What is left over is no failure: the handler snoozes, and the jobs between get their turn.
"""

from __future__ import annotations

from collections.abc import Callable

from shared.clock import SYSTEM, Clock
from shared.jobs.context import Context

LEFT = 60.0  # seconds of the job's time that no new batch is begun in; its half, when that is less
AGAIN = 1.0  # seconds that a handler which was not done leaves to others
HOUR = 3600.0


def enough(ctx: Context, clock: Clock = SYSTEM) -> Callable[[], bool]:
    """Ask between batches: whether to stop here.

    Args:
        ctx: of the job.
        clock: that its deadline is of.
    """
    begun = clock.monotonic()
    last = ctx.deadline - min(LEFT, (ctx.deadline - begun) / 2)
    return lambda: ctx.cancelled() or clock.monotonic() >= last
