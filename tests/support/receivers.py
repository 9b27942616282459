"""Receivers over real sockets, the hostile ones among them; certificates; a resolver of made-up names.

A `Receiver` accepts connections in a thread and hands each to a behaviour, which reads and writes
raw bytes as it likes. Behaviours below are those of the suite and of the measurement.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Self

import trustme

from shared.config.env import Environment
from shared.config.outbound import read_outbound
from shared.services.resolver import NameUnresolved
from shared.webhooks.policy import Policy

NAME = "receiver.example.org"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """One connection as a behaviour sees it: raw, and interrupted when the receiver closes."""

    def __init__(self, connection: socket.socket, closing: threading.Event) -> None:
        self.connection = connection
        self._closing = closing

    def request(self) -> bytes:
        """Everything up to the end of a request with Content-Length; b"" when it never came."""
        got = b""
        while b"\r\n\r\n" not in got:
            piece = self.connection.recv(65_536)
            if not piece:
                return b""
            got += piece
        head, _, body = got.partition(b"\r\n\r\n")
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < length:
            body += self.connection.recv(65_536)
        return head + b"\r\n\r\n" + body

    def send(self, payload: bytes) -> None:
        """All of it."""
        self.connection.sendall(payload)

    def trickle(self, payloads: Iterator[bytes], every: float = 0.02) -> None:
        """One after the other, slowly, until it is over."""
        for payload in payloads:
            if self._closing.wait(every):
                return
            self.send(payload)

    def flood(self, payload: bytes, times: int) -> None:
        """As fast as it is taken."""
        for _ in range(times):
            if self._closing.is_set():
                return
            self.send(payload)

    def rest(self) -> None:
        """Do nothing until it is over, or the other side has gone."""
        while not self._closing.wait(0.01):
            ready, _, _ = select.select([self.connection], [], [], 0)
            if ready and not self.alive():
                return

    def alive(self) -> bool:
        """Whether the other side still holds the connection (over TLS: as far as one can see)."""
        try:
            return bool(self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        except (BlockingIOError, ssl.SSLError, ValueError):
            return True  # over TLS, nobody may peek
        except OSError:
            return False


Behaviour = Callable[[Peer], None]


class Receiver:
    """Listens on this machine.

    Args:
        behaviour: what it does with a connection.
        context: speaks TLS.
        host: an address of this machine.
        port: 0 = a free one.
        small: a small buffer for what comes in.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        context: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        small: bool = False,
    ) -> None:
        self._behaviour = behaviour
        self._context = context
        self._closing = threading.Event()
        self.connections = 0
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.socket(family, socket.SOCK_STREAM)
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if small:
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._listening.bind((host, port))
        self._listening.listen(64)
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            self._behaviour(Peer(connection, self._closing))
        except OSError:
            pass  # the other side went away, which is what it is to do
        finally:
            connection.close()


def answering(*payloads: bytes) -> Behaviour:
    """Reads a request, answers with these bytes, and hangs up."""

    def behave(peer: Peer) -> None:
        if peer.request():
            for payload in payloads:
                peer.send(payload)

    return behave


class Recording:
    """Answers and keeps every request."""

    def __init__(self, answer: bytes = OK) -> None:
        self._answer = answer
        self.requests: list[bytes] = []

    def __call__(self, peer: Peer) -> None:
        """Serve one connection."""
        got = peer.request()
        if got:
            self.requests.append(got)
            peer.send(self._answer)


def never_answers(peer: Peer) -> None:
    peer.request()
    peer.rest()


def never_reads(peer: Peer) -> None:
    peer.rest()


def trickled_headers(peer: Peer) -> None:
    peer.request()
    peer.trickle(_spelt(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"s" * 100_000))


def endless_headers(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\n")
    peer.flood(b"X-More: " + b"m" * 1000 + b"\r\n", 1_000_000)


def one_endless_header(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nX-More: ")
    peer.flood(b"m" * 10_000, 1_000_000)


def endless_informational(peer: Peer) -> None:
    peer.request()
    peer.flood(b"HTTP/1.1 103 Early Hints\r\n\r\n", 10_000_000)


def trickled_informational(peer: Peer) -> None:
    peer.request()
    peer.trickle(iter(lambda: b"HTTP/1.1 100 Continue\r\n\r\n", b""))


def trickled_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    peer.trickle(_spelt(b"b" * 100_000))


def trickled_chunks(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    peer.trickle(iter(lambda: b"1\r\nb\r\n", b""))


def huge_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 250000000\r\n\r\n")
    peer.flood(b"b" * 100_000, 2_500)


def silent_body(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")
    peer.rest()


def never_speaks_tls(peer: Peer) -> None:
    peer.connection.recv(65_536)
    peer.rest()


def trickled_tls(peer: Peer) -> None:
    peer.connection.recv(65_536)
    peer.trickle(_spelt(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb\x03\x03" + bytes(16_000)))


def endless_tls(peer: Peer) -> None:
    peer.connection.recv(65_536)
    record = b"\x16\x03\x03\x40\x00"
    peer.send(record + b"\x0b\xff\xff\xff" + bytes(16_380))
    peer.flood(record + bytes(16_384), 100_000)


def resets(peer: Peer) -> None:
    peer.request()
    peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")


def _spelt(text: bytes) -> Iterator[bytes]:
    return (text[i : i + 1] for i in range(len(text)))


class Names:
    """A resolver of made-up names, which counts how often it was asked."""

    def __init__(self, known: Mapping[str, Sequence[str]] | None = None) -> None:
        self._known = {NAME: ["127.0.0.1"], **(known or {})}
        self.asked = 0

    def resolve(self, host: str, seconds: float, *, as_is: bool) -> list[str]:
        """See shared.services.resolver.Resolver."""
        assert seconds > 0
        del as_is
        self.asked += 1
        if host not in self._known:
            raise NameUnresolved("no such name", absent=True)
        return list(self._known[host])


def local_policy(**environ: str) -> Policy:
    """A policy by which this machine may be called, over http as well."""
    given = {"ALLOW": "127.0.0.0/8,::1/128", "HTTP": "yes", **environ}
    return Policy(
        read_outbound(Environment({f"WEIRKEEPER_OUTBOUND_{k}": v for k, v in given.items()}))
    )


class Authority:
    """A certificate authority of the suite."""

    def __init__(self) -> None:
        self._ca = trustme.CA()

    def write(self, path: str) -> str:
        """Its own certificate as a file for WEIRKEEPER_OUTBOUND_CA."""
        self._ca.cert_pem.write_to_path(path)
        return path

    def server(self, *names: str, **more: object) -> ssl.SSLContext:
        """A server's context with a certificate for these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._ca.issue_cert(*names, **more).configure_cert(context)  # type: ignore[arg-type]
        return context
