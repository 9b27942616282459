"""What httpcore reads from and writes to: a plain stream, and an encrypted one over the same wire.

Stands between httpcore and `wire`. The encryption runs in memory, so that each of its bytes passes
the wire, and with it the deadline and the allowance. Ends never wait for the other side's farewell.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import httpcore

from workers.sideeffects.http.attempt import Attempt, Failed
from workers.sideeffects.http.wire import SLICE, Wire

_WRONG_NAME = {62, 64}  # of OpenSSL: host name, IP address
_EXPIRED = {9, 10}  # not valid yet, not valid any more


class PlainStream(httpcore.NetworkStream):
    """Bytes as they are."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._left = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most so many bytes; b"" = the other side has ended."""
        del timeout  # the attempt's deadline holds
        _answer_awaited(self._wire.attempt)
        got = self._left or self._wire.receive()
        self._left = got[max_bytes:]
        return got[:max_bytes]

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of it."""
        del timeout
        self._wire.send(buffer)

    def close(self) -> None:
        """End the connection."""
        self._wire.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """The same connection, encrypted, its certificate checked for this name."""
        del timeout
        stream = EncryptedStream(self._wire, ssl_context, server_hostname or "")
        try:
            stream.handshake()
        except BaseException:
            self.close()  # httpcore does not, before there is a connection of its own
            raise
        self._wire.attempt.enter("write")
        return stream

    def get_extra_info(self, info: str) -> Any:
        """Nothing that httpcore needs for HTTP/1.1, but the socket."""
        return self._wire.socket() if info == "socket" else None


class EncryptedStream(httpcore.NetworkStream):
    """TLS over a wire."""

    def __init__(self, wire: Wire, context: ssl.SSLContext, host: str) -> None:
        self._wire = wire
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)

    def handshake(self) -> None:
        """Agree upon keys and check the certificate.

        Raises:
            Failed: tls_…, or time or allowance is over.
        """
        try:
            self._until_done(self._tls.do_handshake)
        except ssl.SSLCertVerificationError as error:
            raise Failed(_untrusted(error.verify_code), error.verify_message) from error
        except (ssl.SSLError, httpcore.WriteError) as error:
            raise Failed("tls_failed", str(error)) from error

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """At most so many bytes; b"" = the other side has ended."""
        del timeout
        _answer_awaited(self._wire.attempt)
        try:
            return bytes(self._until_done(partial(self._tls.read, max_bytes)))
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            self._wire.attempt.hung_up = True
            return b""
        except ssl.SSLError as error:
            raise Failed("protocol_error", str(error)) from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All of it, slice by slice."""
        del timeout
        rest = memoryview(buffer)
        try:
            while rest:
                rest = rest[self._until_done(partial(self._tls.write, rest[:SLICE])) :]
        except ssl.SSLError as error:
            raise httpcore.WriteError(str(error)) from error

    def close(self) -> None:
        """End the connection."""
        self._wire.close()

    def get_extra_info(self, info: str) -> Any:
        """What httpcore asks for to see which HTTP was agreed upon."""
        if info == "ssl_object":
            return self._tls
        return self._wire.socket() if info == "socket" else None

    def _until_done(self, step: Callable[[], Any]) -> Any:
        """Repeat a step, moving bytes in between, until it no longer wants any."""
        done, result = self._step(step)
        while not done:
            self._take_in()
            done, result = self._step(step)
        return result

    def _step(self, step: Callable[[], Any]) -> tuple[bool, Any]:
        try:
            done, result = True, step()
        except ssl.SSLWantReadError:
            done, result = False, None
        if self._outgoing.pending:
            self._wire.send(self._outgoing.read())
        return done, result

    def _take_in(self) -> None:
        got = self._wire.receive()
        if got:
            self._incoming.write(got)
        else:
            self._incoming.write_eof()


def _answer_awaited(attempt: Attempt) -> None:
    """The first read after the request is written begins the wait for an answer."""
    if attempt.phase == "write":
        attempt.enter("ttfb")


def _untrusted(verify_code: int) -> str:
    if verify_code in _WRONG_NAME:
        return "tls_wrong_name"
    return "tls_expired" if verify_code in _EXPIRED else "tls_untrusted"
