"""When a child has served long enough: after so many jobs, at an age, or grown too large. Pure.

What leaks in a handler, or in a library that it uses, ends with its child. Looked at between jobs
only. Each child gets up to a fifth more than its queue says, so that siblings do not go together.
"""

from __future__ import annotations

from dataclasses import dataclass

from shared.backoff import jittered


@dataclass(frozen=True, slots=True)
class Recycle:
    """When a child is replaced; 0 = never for that reason.

    Attributes:
        jobs: that it has run.
        seconds: that it has lived.
        mib: of memory by which it has grown.
    """

    jobs: int = 0
    seconds: float = 0.0
    mib: int = 0


class Wear:
    """How much of one child's service is over.

    Args:
        recycle: of its queue.
        now: when it was started, in seconds.
    """

    def __init__(self, recycle: Recycle, now: float) -> None:
        self._jobs = jittered(recycle.jobs)
        self._until = now + jittered(recycle.seconds) if recycle.seconds else 0.0
        self._mib = recycle.mib

    def reason(self, jobs: int, mib: float, now: float) -> str:
        """Why it is to be replaced now: jobs, memory, age; "" = it is not.

        Args:
            jobs: that it has run.
            mib: of memory by which it has grown.
            now: in seconds.
        """
        if self._mib and mib >= self._mib:
            return "memory"
        if self._jobs and jobs >= self._jobs:
            return "jobs"
        if self._until and now >= self._until:
            return "age"
        return ""
