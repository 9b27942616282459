"""Callers of the listener as they come over a socket, and what a program has open."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest


class Caller:
    """One raw client: asks, and may hang up without a word."""

    def __init__(self, address: str, path: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 10)
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n".encode())

    def answer(self) -> tuple[int, dict[str, Any]]:
        found = self.answer_kept()
        self.hang_up()
        return found

    def answer_kept(self) -> tuple[int, dict[str, Any]]:
        """The same, with the connection left open."""
        self.socket.settimeout(40)
        text = b""
        while b"\r\n\r\n" not in text or not text.rstrip().endswith(b"}"):
            text += self.socket.recv(65536) or pytest.fail(f"closed after {text!r}")
        head, _, body = text.partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(body)

    def hang_up(self) -> None:
        self.socket.close()


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
