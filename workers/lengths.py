"""How long jobs last, by kind: measured, quick to rise, slow to fall. Pure.

Fed by the executor with what ran; it asks how many jobs may travel together, and how much work may
be claimed ahead.
"""

from __future__ import annotations


class Lengths:
    """Estimates in seconds.

    Attributes:
        longest: an estimate over all kinds that ran lately.

    Args:
        unknown: what a job of a kind that never ran is taken to last.
        decay: weight of a new, shorter job.
    """

    def __init__(self, unknown: float, decay: float = 0.1) -> None:
        self.longest = unknown
        self._unknown = unknown
        self._left = 1 - decay
        self._kinds: dict[str, float] = {}

    def of(self, kind: str) -> float:
        """How long a job of this kind lasts."""
        return self._kinds.get(kind, self._unknown)

    def learn(self, kind: str, seconds: float, times: int) -> None:
        """So many jobs lasted so long, each."""
        left = self._left**times
        self._kinds[kind] = _nearer(self.of(kind), seconds, left)
        self.longest = _nearer(self.longest, seconds, left)

    def at_least(self, seconds: float) -> None:
        """Something lasts so long, whatever it is."""
        self.longest = max(self.longest, seconds)


def _nearer(known: float, seconds: float, left: float) -> float:
    return max(seconds, seconds + left * (known - seconds))
