"""A network of two ends that can go dark: packets leave and nobody gets them, in both ways.

Needs root and iproute2. A thread that calls `enter` makes its sockets in the far end; what it
connects to there is passed on to a place of this machine. `cut` gives each end a wrong address of its
neighbour, as a dead switch would: no end of file, no reset, nothing.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
from pathlib import Path

NEAR, FAR = "10.213.77.1", "10.213.77.2"
NOWHERE = "02:00:00:00:00:99"
CLONE_NEWNET = 0x4000_0000


def possible() -> bool:
    """Whether this process may make one."""
    return os.geteuid() == 0 and Path("/usr/sbin/ip").exists() and not _failing()


def _failing() -> bool:
    name = f"wk-try-{os.getpid()}"
    tried = subprocess.run(
        ["/usr/sbin/ip", "netns", "add", name], check=False, capture_output=True, timeout=10
    )
    if tried.returncode == 0:
        _ip("netns", "delete", name)
    return tried.returncode != 0


def _ip(*words: str) -> str:
    return subprocess.run(
        ["/usr/sbin/ip", *words], check=True, capture_output=True, text=True, timeout=10
    ).stdout


class DarkNetwork:
    """Two ends and a passage.

    Args:
        port: of 127.0.0.1, where connections to NEAR are passed on to.
    """

    def __init__(self, port: int) -> None:
        self._name = f"wk-{os.getpid()}"
        self._here, self._there = f"wkn{os.getpid() % 10**8}", f"wkf{os.getpid() % 10**8}"
        _ip("netns", "add", self._name)
        _ip("link", "add", self._here, "type", "veth", "peer", "name", self._there,
            "netns", self._name)  # fmt: skip
        _ip("address", "add", f"{NEAR}/30", "dev", self._here)
        _ip("link", "set", self._here, "up")
        self._far("address", "add", f"{FAR}/30", "dev", self._there)
        self._far("link", "set", self._there, "up")
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server((NEAR, 0))
        self.port = self._listening.getsockname()[1]
        self._to = port
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def enter(self) -> None:
        """Move the calling thread to the far end, for good."""
        with Path(f"/run/netns/{self._name}").open() as place:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(place.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")

    def cut(self) -> None:
        """Go dark."""
        where = ("lladdr", NOWHERE, "nud", "permanent", "dev")
        _ip("neigh", "replace", FAR, *where, self._here)
        self._far("neigh", "replace", NEAR, *where, self._there)

    def heal(self) -> None:
        """Be a network again."""
        _ip("neigh", "delete", FAR, "dev", self._here)
        self._far("neigh", "delete", NEAR, "dev", self._there)

    def close(self) -> None:
        """End it with all its connections."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in self._sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        self._thread.join(10)
        for one in self._sockets:
            one.close()
        _ip("netns", "delete", self._name)

    def _far(self, *words: str) -> None:
        _ip("-netns", self._name, *words)

    def _accept(self) -> None:
        pumps: list[threading.Thread] = []
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                break
            server = socket.create_connection(("127.0.0.1", self._to))
            self._sockets += (client, server)
            for ends in ((client, server), (server, client)):
                pumps.append(threading.Thread(target=_pump, args=ends))
                pumps[-1].start()
        for pump in pumps:
            pump.join(10)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return
