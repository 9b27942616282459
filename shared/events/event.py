"""An event as a subscriber's handler gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded event. `occurred_at` is ISO 8601 in UTC; `id` is a UUID as text."""

    id: str
    type: str
    owner_id: str | None
    subject: str
    data: Mapping[str, Any]
    occurred_at: str
