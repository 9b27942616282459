"""A way to a Postgres that can be shut: what is connected is cut, who comes is refused."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Gate:
    """Passes bytes between a port of this machine and a server's.

    Attributes:
        url: of the database through the gate.

    Args:
        url: of the database itself.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._pairs: list[socket.socket] = []
        self._lock = threading.Lock()
        self._listener: socket.socket | None = None
        self._port = 0
        self.open()
        login = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{login}@127.0.0.1:{self._port}").geturl()

    def open(self) -> None:
        """Let everybody through from now on."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self._port))
        listener.listen(64)
        self._port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Cut every connection and refuse new ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # ends the accept
            listener.close()
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for end in pairs:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            with self._lock:
                self._pairs += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_carry, args=(source, target), daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    for end in (source, target):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
    source.close()
