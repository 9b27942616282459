"""What operations work with: the ports, and who calls. Each face builds one for its caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.events.endpoints import NO_ENDPOINTS, Endpoints
from shared.events.log import EventLog
from shared.events.port import Recorder
from shared.jobs.port import Inspector, Waits, untold
from shared.site.notes import Notes
from shared.site.search import Search
from shared.webhooks.port import Webhooks


@dataclass(frozen=True, slots=True)
class Desk:
    """The ports of one caller.

    Attributes:
        owner_id: who calls: what they may see and whose notes they write.
        told: called with how many are done, by what takes long.
    """

    owner_id: str
    notes: Notes
    search: Search
    inspector: Inspector
    waits: Waits
    recorder: Recorder
    events: EventLog
    webhooks: Webhooks
    endpoints: Endpoints = NO_ENDPOINTS
    told: Callable[[int], None] = untold
