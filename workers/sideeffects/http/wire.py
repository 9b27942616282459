"""Bytes over a connected socket, under the attempt's deadline and byte allowance.

Stands under both streams (`streams`). Nothing here blocks: each step waits for the socket no
longer than the attempt may last, whatever trickles in. Timeouts that httpcore hands down are not
used: they are per step, and a peer that sends a byte now and then never meets one.
"""

from __future__ import annotations

import select
import socket

import httpcore

from workers.sideeffects.http.attempt import Attempt, Failed

SLICE = 16 * 1024  # bytes, of one step


class Wire:
    """A connected socket that does not block.

    Args:
        connected: closed by `close`.
        attempt: says how long and how much.
    """

    def __init__(self, connected: socket.socket, attempt: Attempt) -> None:
        self._socket = connected
        self.attempt = attempt
        self._reading = _poll(connected, select.POLLIN)
        self._writing = _poll(connected, select.POLLOUT)

    def receive(self) -> bytes:
        """What came, at least one byte; b"" = the other side has ended.

        Raises:
            Failed: time is over, too much came, or the connection broke.
        """
        self._await(self._reading)
        try:
            got = self._socket.recv(SLICE)
        except BlockingIOError:  # woken for nothing
            return self.receive()
        except OSError as error:
            raise Failed("connection_reset", str(error)) from error
        self.attempt.hung_up = self.attempt.hung_up or not got
        self.attempt.count(len(got))
        return got

    def send(self, payload: bytes) -> None:
        """Send everything, slice by slice.

        Raises:
            Failed: time is over.
            httpcore.WriteError: the other side takes no more; it may have answered already.
        """
        rest = memoryview(payload)
        while rest:
            self._await(self._writing)
            rest = rest[self._send_some(rest[:SLICE]) :]

    def _send_some(self, piece: memoryview) -> int:
        try:
            return self._socket.send(piece)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise httpcore.WriteError(str(error)) from error

    def _await(self, events: select.poll) -> None:
        left = self.attempt.remaining()
        if not events.poll(left * 1000):
            self.attempt.remaining()

    def close(self) -> None:
        """End the connection at once; what is still to come is not waited for."""
        self._socket.close()

    def socket(self) -> socket.socket:
        """The socket itself."""
        return self._socket


def _poll(connected: socket.socket, events: int) -> select.poll:
    made = select.poll()
    made.register(connected, events)
    return made
