"""What bounds a pool: how many children, how patient, how long they serve, what jobs may use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from workers.pool.watch import Allowed
from workers.pool.wear import Recycle


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a pool.

    Attributes:
        size: how many children.
        grace: seconds that a job asked to stop may take before SIGKILL.
        recycle: when a child is replaced between jobs.
        allowed: what runs of a kind may use, for kinds that have limits.
    """

    size: int
    grace: float
    recycle: Recycle = field(default_factory=Recycle)
    allowed: Mapping[str, Allowed] = field(default_factory=dict)
