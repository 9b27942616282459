"""No network call while a job's transaction is open: seen at run time, in every child.

Installed once by child_main, and from then on told by the interpreter of each connection, each look
at DNS and each datagram, in any thread and from any client (audit hooks, PEP 578). A call over a
connection that was opened before the transaction is only seen where the client itself reports it
(http.client, smtplib). Other connections to the job's own database are no network call.
"""

from __future__ import annotations

import ipaddress
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from psycopg.pq import TransactionStatus

from shared.errors import NetworkInTransaction
from shared.postgres.driver.connect import Connection

Address = tuple[str | None, int | None]
_FAMILIES = (socket.AF_INET, socket.AF_INET6)
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR)


def watch_network(connection: Callable[[], Connection | None]) -> None:
    """From now on, refuse network calls in this process while a transaction is open.

    Args:
        connection: the job's, if it has one.
    """

    def hook(event: str, details: tuple[Any, ...]) -> None:
        target = _TARGETS.get(event)
        if target is not None:
            conn = connection()
            if conn is not None and _in_transaction(conn):
                _check(conn, target(details))

    sys.addaudithook(hook)


def _in_transaction(conn: Connection) -> bool:
    """Whether a transaction is open; a statement that runs is one, for the thread that runs it."""
    status = conn.pgconn.transaction_status
    return status in _OPEN or (
        status is TransactionStatus.ACTIVE and threading.current_thread() is threading.main_thread()
    )


def _check(conn: Connection, address: Address | None) -> None:
    if address is None or _is_database(conn, address):
        return
    host, port = address
    where = f"{host}:{port}" if port else str(host)
    raise NetworkInTransaction(
        f"network: expected no call while the job's transaction is open; got one to {where}; "
        "make it before the transaction, or after its end"
    )


def _is_database(conn: Connection, address: Address) -> bool:
    host, port = address
    known = {conn.info.host, conn.info.hostaddr}
    return host in known and (port is None or port == conn.info.port)


def _of_socket(details: tuple[Any, ...]) -> Address | None:
    end, address = details[0], details[1]
    if getattr(end, "family", None) not in _FAMILIES or not isinstance(address, tuple):
        return None
    return str(address[0]), int(address[1])


def _of_name(details: tuple[Any, ...]) -> Address | None:
    """A look at DNS; an address that is one already costs no network."""
    host = details[0]
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if not isinstance(name, str) or _is_address(name):
        return None
    return name, None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in ("", "localhost")
    return True


def _of_http(details: tuple[Any, ...]) -> Address | None:
    client = details[0]
    return str(client.host), int(client.port)


def _of_smtp(details: tuple[Any, ...]) -> Address | None:
    return str(getattr(details[0], "_host", "a mail server")), None


# Audit events, and how each tells where it goes.
_TARGETS: Mapping[str, Callable[[tuple[Any, ...]], Address | None]] = {
    "socket.connect": _of_socket,
    "socket.sendto": _of_socket,
    "socket.sendmsg": _of_socket,
    "socket.getaddrinfo": _of_name,
    "socket.gethostbyname": _of_name,
    "http.client.send": _of_http,
    "smtplib.send": _of_smtp,
}
