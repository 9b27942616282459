"""Connect to the first of several addresses that takes the connection.

Stands between `backend`, which has judged the addresses, and `wire`. The next address is begun
when the one before has failed, or has said nothing for a quarter of a second; so a dead first one
costs no more than that. This is one connection to one host and no retry: nothing has been sent
yet.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import select
import socket
from collections import deque
from collections.abc import Sequence

from workers.sideeffects.http.attempt import Attempt, Failed

STAGGER = 0.25  # seconds before the next address is begun
MOST_TRIED = 6  # of however many a name has
_UNREACHABLE = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def connect(addresses: Sequence[str], port: int, attempt: Attempt) -> socket.socket:
    """A connected socket that does not block, to one of these addresses and no other.

    Raises:
        Failed: connect_…, or blocked_target if the peer is somebody else.
    """
    race = _Race(addresses[:MOST_TRIED], port, attempt)
    try:
        return race.run()
    finally:
        race.close()


class _Race:
    """Sockets on their way."""

    def __init__(self, addresses: Sequence[str], port: int, attempt: Attempt) -> None:
        self._waiting = deque(addresses)
        self._port = port
        self._attempt = attempt
        self._poll = select.poll()
        self._running: dict[int, tuple[socket.socket, str]] = {}
        self._errors: list[int] = []

    def run(self) -> socket.socket:
        """See `connect`."""
        while self._running or self._waiting:
            left = self._attempt.remaining()
            if not self._running:  # the first, or the one before failed at once
                self._begin()
                continue
            pause = min(left, STAGGER) if self._waiting else left
            ready = self._poll.poll(pause * 1000)
            winner = next(filter(None, [self._ended(fd) for fd, _ in ready]), None)
            if winner is not None:
                return winner
            if self._waiting and not ready:
                self._begin()
        raise Failed(_code(self._errors), ", ".join(map(os.strerror, self._errors)))

    def close(self) -> None:
        """End those that did not win."""
        for sock, _ in self._running.values():
            sock.close()
        self._running.clear()

    def _begin(self) -> None:
        address = self._waiting.popleft()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:
                raise  # we have no descriptors left: our own fault
            self._errors.append(error.errno)
            return
        self._running[sock.fileno()] = (sock, address)  # from here on, `close` ends it
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        failed = sock.connect_ex((address, self._port))
        if failed not in (0, errno.EINPROGRESS):
            self._errors.append(failed)
            del self._running[sock.fileno()]
            sock.close()
            return
        self._poll.register(sock, select.POLLOUT)

    def _ended(self, descriptor: int) -> socket.socket | None:
        """The socket, if it is connected; else it has failed."""
        sock, address = self._running.pop(descriptor)
        self._poll.unregister(descriptor)
        failed = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            self._errors.append(failed)
            sock.close()
            return None
        self._running[descriptor] = (sock, address)
        peer = str(sock.getpeername()[0])
        if ipaddress.ip_address(peer) != ipaddress.ip_address(address):
            raise Failed("blocked_target", f"asked for {address}, connected to {peer}", rule="ip")
        del self._running[descriptor]
        shown = f"[{address}]" if ":" in address else address
        self._attempt.peer = f"{shown}:{self._port}"
        return sock


def _code(errors: Sequence[int]) -> str:
    """What the failures say together: the most telling one."""
    if errno.ECONNREFUSED in errors:
        return "connect_refused"
    if errno.ETIMEDOUT in errors:
        return "connect_timeout"
    return "connect_unreachable" if set(errors) <= _UNREACHABLE else "connect_failed"
