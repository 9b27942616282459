"""Asking the supervisord of a home: how its programs stand, and to stop or start a group of them.

Speaks just enough XML-RPC over its socket for that. supervisor's own client would cost the metrics
program 8 MiB. Used by `weirkeeper drain` and by the metrics program; nothing here knows what the
programs are.
"""

from __future__ import annotations

import base64
import socket
from configparser import Error as Unreadable
from configparser import RawConfigParser
from dataclasses import dataclass
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

from shared.errors import WeirkeeperError

SOON = 2.0  # seconds that an answer may take when supervisord need not wait for anything
LARGEST = 1 << 22  # bytes of an answer


class SupervisordAway(WeirkeeperError):
    """No supervisord answers in this home."""


class SupervisordRefused(WeirkeeperError):
    """It answers, and will not do this."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program as supervisord sees it. `state`: RUNNING, STOPPED, EXITED, FATAL, …."""

    group: str
    name: str
    state: str
    pid: int


class Supervision:
    """The supervisord of a home, if one runs.

    Args:
        home: WEIRKEEPER_HOME.
    """

    def __init__(self, home: Path) -> None:
        self._run = home / "run"

    def programs(self) -> list[Program]:
        """Every program.

        Raises:
            SupervisordAway: none runs.
            SupervisordRefused: it answered with an error.
        """
        rows = _structs(self._ask("getAllProcessInfo"))
        return [Program(r["group"], r["name"], r["statename"], int(r["pid"])) for r in rows]

    def stop_group(self, group: str, seconds: float) -> None:
        """Stop all programs of a group together; return when they have ended.

        Args:
            group: its name.
            seconds: that this may take.

        Raises:
            SupervisordAway: none runs, or it took longer.
            SupervisordRefused: no such group, or it is shutting down.
        """
        self._ask("stopProcessGroup", group, seconds=seconds)

    def start_group(self, group: str, seconds: float) -> None:
        """Start all programs of a group; return when they run.

        Raises:
            SupervisordAway: none runs, or it took longer.
            SupervisordRefused: no such group, or one does not start.
        """
        self._ask("startProcessGroup", group, seconds=seconds)

    def _ask(self, method: str, *words: str, seconds: float = SOON) -> ET.Element:
        """Call a method of strings; return the element that answers."""
        for address, secret in self._places():
            with socket.socket(socket.AF_UNIX) as conn:
                conn.settimeout(seconds)
                try:
                    conn.connect(address)
                    conn.sendall(_request(method, words, secret))
                    answer = _whole(conn)
                except OSError as error:
                    if isinstance(error, TimeoutError):
                        told = f"supervisord did not answer {method} within {seconds:g} s"
                        raise SupervisordAway(told) from error
                    continue  # left behind by one that is gone: look in the other place
            return _answer(answer)
        raise SupervisordAway(f"no supervisord runs in {self._run.parent}")

    def _places(self) -> list[tuple[str, str]]:
        """(socket, "user:password" or "") of a server's supervisord, then of a plain one."""
        plain = (str(self._run / "supervisor.sock"), "")
        parser = RawConfigParser(strict=False)
        try:
            parser.read_string((self._run / "supervisord.conf").read_text("utf-8"))
            control = parser["supervisorctl"]
        except (OSError, KeyError, Unreadable):
            return [plain]
        url = control.get("serverurl", "").removeprefix("unix://").replace("%%", "%")
        secret = f"{control.get('username', '')}:{control.get('password', '')}"
        return [(url, secret), plain] if url else [plain]


def _request(method: str, words: tuple[str, ...], secret: str) -> bytes:
    params = "".join(f"<param><value><string>{escape(w)}</string></value></param>" for w in words)
    body = (
        f"<?xml version='1.0'?><methodCall><methodName>supervisor.{method}</methodName>"
        f"<params>{params}</params></methodCall>"
    ).encode()
    head = [
        "POST /RPC2 HTTP/1.0",
        "Content-Type: text/xml",
        f"Content-Length: {len(body)}",
    ]
    if secret.strip(":"):
        head.append(f"Authorization: Basic {base64.b64encode(secret.encode()).decode()}")
    return "\r\n".join([*head, "", ""]).encode() + body


def _whole(conn: socket.socket) -> bytes:
    """All that is answered; supervisord closes after it."""
    parts: list[bytes] = []
    while (part := conn.recv(65_536)) and sum(map(len, parts)) < LARGEST:
        parts.append(part)
    return b"".join(parts)


def _answer(raw: bytes) -> ET.Element:
    head, _, body = raw.partition(b"\r\n\r\n")
    status = head.split(b"\r\n", 1)[0].decode("ascii", "replace")
    if " 200" not in status:
        raise SupervisordRefused(f"supervisord answered {status or 'nothing'}")
    if b"<!DOCTYPE" in body or b"<!ENTITY" in body:
        raise SupervisordRefused("supervisord answered with a document type, which it never does")
    try:
        found = ET.fromstring(body)  # noqa: S314  (no document type: nothing expands)
    except ET.ParseError as error:
        raise SupervisordRefused(f"supervisord answered no XML: {error}") from error
    if found.find("fault") is not None:
        said = [value for row in _structs(found) for value in (row.get("faultString"),) if value]
        raise SupervisordRefused(f"supervisord refused: {' '.join(said)}")
    return found


def _structs(answer: ET.Element) -> list[dict[str, str]]:
    """Each struct of an answer, values as text."""
    return [
        {
            str(member.findtext("name")): "".join(value.itertext()).strip()
            for member in struct.findall("member")
            if (value := member.find("value")) is not None
        }
        for struct in answer.iter("struct")
    ]
