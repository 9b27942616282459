"""PORT of whoever carries events out of the application: which of them would have taken an event.

Asked by the operation events.dry_run, beside the subscriptions. Without such carriers it is
NO_ENDPOINTS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Endpoints(Protocol):
    """Places outside that take events."""

    def wanting(self, owner_id: str, types: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Endpoints of an owner that take events of these types: ids by type."""
        ...


class NoEndpoints:
    """Nothing leaves the application."""

    def wanting(self, _owner_id: str, _types: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """None at all."""
        return {}


NO_ENDPOINTS: Endpoints = NoEndpoints()
