"""Floors: below which sequence number no row of a lane can appear any more.

A claim that starts at the beginning of its lane walks over every dead row that a held snapshot
keeps from vacuum (128 ms at a million). Rows draw their number after their transaction has an id,
so: read the sequence's last value L; *later* note the next transaction id; once a snapshot's xmin
has reached it, every transaction that could hold a number at or below L has ended, and what
is not visible now at or below L never will be. Floor = min(L, lowest visible - 1). A read-only
snapshot does not hold floors back. Pure: fed with what each claim's reply says.

The next transaction id is not a snapshot's xmax, which is one more than the last id that *ended*:
a writer that is open while nobody else writes would be passed over. Each statement is to be a
transaction of its own: in a longer one Postgres would tell its own id instead of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Lane = tuple[str, int]  # (kind, priority)


@dataclass
class Floors:
    """Floors by lane, and the note that will raise them."""

    _floors: dict[Lane, int] = field(default_factory=dict)
    _last_value: int = 0  # of the sequence, from the reply before
    _noted: tuple[int, int] | None = None  # (last value, a later next transaction id)

    def of(self, lane: Lane) -> int:
        """Floor of a lane; 0 = the beginning."""
        return self._floors.get(lane, 0)

    def reset(self) -> None:
        """Forget everything: after a reconnect nothing that was inferred may be trusted."""
        self._floors.clear()
        self._last_value = 0
        self._noted = None

    def observe(
        self,
        last_value: int,
        xmin: int,
        next_xid: int,
        lowest: Sequence[tuple[Lane, int]] | None,
    ) -> None:
        """Learn from one reply.

        Args:
            last_value: of the sequence, read while the statement ran.
            xmin: oldest transaction id still open in the statement's snapshot.
            next_xid: transaction id to be given out next, read after the snapshot was taken.
            lowest: for a sweep, the lowest number visible in each lane (0 = none); else None.
        """
        if self._noted is not None and xmin >= self._noted[1] and lowest is not None:
            limit = self._noted[0]
            for lane, low in lowest:
                floor = min(limit, low - 1) if low else limit
                self._floors[lane] = max(floor, self.of(lane))
            self._noted = None
        if self._noted is None and self._last_value:
            self._noted = (self._last_value, next_xid)
        self._last_value = last_value
