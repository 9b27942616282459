"""What operations work with: the ports, and who calls. Each face builds one for its caller."""

from __future__ import annotations

from dataclasses import dataclass

from shared.jobs.port import Inspector, Waits
from shared.site.notes import Notes
from shared.site.search import Search


@dataclass(frozen=True, slots=True)
class Desk:
    """The ports of one caller.

    Attributes:
        owner_id: who calls: what they may see and whose notes they write.
    """

    owner_id: str
    notes: Notes
    search: Search
    inspector: Inspector
    waits: Waits
