"""PORT of the outbox: recording an event in the caller's transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self


class Recorder(Protocol):
    """Records events; an event exists iff the business write commits."""

    def with_tx(self, conn: Any) -> Self:
        """Return a Recorder that writes through `conn`; this one is left as it is."""
        ...

    def record(
        self,
        event_type: str,
        *,
        owner_id: str | None = None,
        subject: str = "",
        data: Mapping[str, Any] | None = None,
        trace: str | None = None,
    ) -> str:
        """Record an event.

        Args:
            event_type: a declared type.
            owner_id: whose event it is, at most 200 characters.
            subject: what it is about, at most 2,048 characters.
            data: a thin JSON object (ids, not bodies), at most 256 KiB.
            trace: W3C traceparent.

        Returns:
            The event's id, a UUID as text.

        Raises:
            UnknownEventType: no declaration names the type.
            InvalidArguments: data that cannot be stored.
        """
        ...


class AsyncRecorder(Protocol):
    """Recorder, for asyncio."""

    def with_tx(self, conn: Any) -> Self:
        """As Recorder.with_tx, with an asynchronous connection."""
        ...

    async def record(
        self,
        event_type: str,
        *,
        owner_id: str | None = None,
        subject: str = "",
        data: Mapping[str, Any] | None = None,
        trace: str | None = None,
    ) -> str:
        """As Recorder.record."""
        ...
