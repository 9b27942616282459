"""Services that start in order and stop in the reverse order, each whatever the others did."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from shared.services.service import Service

log = logging.getLogger(__name__)


class ServiceGroup:
    """Several services as one."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    def start(self) -> None:
        """Start each in order; when one fails, stop those that run and raise its error."""
        try:
            for service in self._services:
                service.start()
        except BaseException:
            self.stop()
            raise

    def started(self) -> bool:
        """Whether every one runs."""
        return all(service.started() for service in self._services)

    def stop(self) -> None:
        """Stop each, last started first; an error in one never keeps another running."""
        for service in reversed(self._services):
            try:
                service.stop()
            except Exception:
                log.exception("a service did not stop cleanly")
