"""What the listener counts of its LISTEN connection (docs/metrics.md)."""

from __future__ import annotations

from shared.notices.channels import LABELS
from shared.notices.source import Watcher
from shared.telemetry.instruments import Instruments


class ListenWatcher(Watcher):
    """Counts connects and notices."""

    def __init__(self, instruments: Instruments) -> None:
        self._of = instruments
        instruments.listener_connected.set(0)

    def turned(self) -> None:
        """The loop turns."""
        self._of.turned("notices")

    def connected(self, *, again: bool) -> None:
        """LISTEN stands."""
        self._of.listener_connected.set(1)
        self._of.db_connects_total.inc()
        if again:
            self._of.listener_reconnects_total.inc()

    def disconnected(self) -> None:
        """LISTEN is lost."""
        self._of.listener_connected.set(0)

    def heard(self, channel: str) -> None:
        """A notice arrived."""
        self._of.listener_notifications_total.labels(LABELS.get(channel, "other")).inc()
