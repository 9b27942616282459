"""Who is let in over HTTP: whole requests, in time, and never so many that health goes unanswered.

Stands between uvicorn and the ASGI application of shared.services.web. A caller who connects and
says nothing, or half a request, costs a place only for seconds, and only while nobody else needs
it. Knows no routes but those of health.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from shared.services.routing import refusal

REQUESTS = 256  # under way at once; whoever comes after them is answered 503, except for health
CONNECTIONS = 512  # at once; more than requests and the backlog, so that a newcomer is heard
REQUEST_SECONDS = 5.0  # from the connect or the first byte until a request is whole
HEALTH = frozenset({"/livez", "/readyz"})


class Admission:
    """An ASGI application that refuses what is too much.

    Args:
        app: answers what is let in.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._under_way >= REQUESTS and scope["path"] not in HEALTH:
            told = f"{REQUESTS} requests are under way; try again"
            await refusal(503, told, reason="full")(scope, receive, send)
            return
        self._under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1


class Connection(H11Protocol):
    """A connection that ends when a request does not come whole in time, or room is needed."""

    _begun = 0.0
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; if there are too many, end the one that has been idle for longest."""
        super().connection_made(transport)
        self._watch()
        if len(self.connections) > CONNECTIONS:
            others = [cast("Connection", other) for other in self.connections if other is not self]
            idle = [other for other in others if other.idle]
            if idle:
                min(idle, key=lambda other: other.begun).end()

    def data_received(self, data: bytes) -> None:
        """Read on; a request's time begins with its first byte."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._unwatch()
        super().connection_lost(exc)

    @property
    def idle(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def begun(self) -> float:
        """When it connected, or its newest request began (seconds of the event loop's clock)."""
        return self._begun

    def end(self) -> None:
        """Close at once; whoever is still answered learns that the caller has gone."""
        self.connections.discard(self)  # before the loop says that it is lost
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the one form of a refusal; called by uvicorn."""
        response = refusal(400, f"expected an HTTP request; got another one: {msg}")
        headers = [*response.raw_headers, (b"connection", b"close")]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        )
        with suppress(h11.LocalProtocolError):  # an earlier request is being answered
            for event in events:
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unwatch()
        elif self._deadline is None:
            self._begun = self.loop.time()
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.end)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
