"""The transport that httpx is given: httpcore over a guarded network, one connection, one request.

Stands between `client` and `backend`. Follows nothing, decodes nothing, keeps no connection, knows
no proxy and no cookie.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator

import httpcore
import httpx

# Their traces show headers, which may hold secrets.
logging.getLogger("httpcore").setLevel(logging.WARNING)


class GuardedTransport(httpx.BaseTransport):
    """Sends one request.

    Args:
        network: where it goes.
        context: checks certificates.
    """

    def __init__(self, network: httpcore.NetworkBackend, context: ssl.SSLContext) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=1,
            max_keepalive_connections=0,
            http1=True,
            http2=False,
            retries=0,
            network_backend=network,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it and return as soon as the head of the answer is in."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method, url, headers=request.headers.raw, content=request.stream
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Raw(answer))

    def close(self) -> None:
        """End the connection."""
        self._pool.close()


class _Raw(httpx.SyncByteStream):
    """The body as it comes."""

    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()
