"""The private pipe between a parent and one child: a pair of AF_UNIX sockets, SOCK_SEQPACKET.

Datagrams keep their bounds, so there is no framing to get wrong and no half message to wait for.
A job's args may be 256 KiB; the kernel takes a datagram as large as the send buffer, which it
caps at net.core.wmem_max, doubled: 425,984 bytes where nobody raised it
(docs/decisions/0011-one-datagram-a-message.md).
"""

from __future__ import annotations

import errno
import mmap
import socket

BUFFER = 1 << 20  # asked for; the kernel gives what it may
LARGEST = 1 << 20  # bytes of the longest message that is received


class MessageTooLong(Exception):
    """The kernel does not take a datagram of this size."""


def open_pair() -> tuple[socket.socket, socket.socket]:
    """The parent's end (non-blocking) and the child's (blocking)."""
    parent, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (parent, child):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
    parent.setblocking(False)
    return parent, child


def send(end: socket.socket, message: bytes) -> None:
    """Send one message.

    Raises:
        MessageTooLong: the kernel refuses its size.
        OSError: the other end is gone, or does not read.
    """
    try:
        end.send(message)
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            raise MessageTooLong(f"{len(message)} bytes") from error
        raise


class Inbox:
    """Receives messages into one buffer.

    Mapped, not a bytearray, which would be written with zeros: pages that no message has touched
    cost nothing (1 MiB a child).
    """

    def __init__(self) -> None:
        self._buffer = mmap.mmap(-1, LARGEST)
        self._view = memoryview(self._buffer)

    def receive(self, end: socket.socket) -> bytes | None:
        """The next message; None = the other end is closed.

        Raises:
            BlockingIOError: nothing is there (a non-blocking end).
            ValueError: longer than any message may be.
        """
        size = end.recv_into(self._buffer, 0, socket.MSG_TRUNC)
        if size > LARGEST:
            raise ValueError(f"message of {size} bytes; expected at most {LARGEST}")
        return bytes(self._view[:size]) if size else None
