"""A network call while the job's transaction is open is refused, from whatever client it comes."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from tests.support.context_app import APP, CALLS
from tests.support.queue import queue

__all__ = ["queue"]

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture
def target():
    """Answers HTTP, and takes any connection, on a loopback port."""
    end = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=serve, args=(end,), daemon=True)
    thread.start()
    host, port = end.getsockname()
    yield {"host": host, "port": port}
    end.shutdown(socket.SHUT_RDWR)
    thread.join(5)
    end.close()


def serve(end: socket.socket) -> None:
    with suppress(OSError):
        while True:
            conn, _ = end.accept()
            threading.Thread(target=answer, args=(conn,), daemon=True).start()


def answer(conn: socket.socket) -> None:
    with conn, suppress(OSError):
        while conn.recv(65536):
            conn.sendall(ANSWER)


@pytest.fixture
def started(queue):
    queue.start(WEIRKEEPER_APP=APP)
    return queue


REFUSED = (
    "NetworkInTransaction: network: expected no call while the job's transaction is open; got one "
    "to "
)


def test_inside_a_transaction_it_is_refused_whatever_the_client(started, target):
    there = f"{target['host']}:{target['port']}"
    jobs = {
        call: started.enqueue("network", {"call": call, "when": "inside", **target})
        for call in CALLS
    }
    jobs["kept"] = started.enqueue("kept", target)  # a connection that was there before
    jobs["an async handler"] = started.enqueue("network_async", target)
    for call, job in jobs.items():
        where = "an.example" if call == "resolve" else there
        error = started.final(job)["error"]
        assert error.startswith(f"{REFUSED}{where}; make it before the transaction"), call


def test_outside_of_one_it_is_not_and_its_own_database_is_no_network(started, target):
    jobs = [
        started.enqueue("network", {"call": call, "when": when, **target})
        for call in sorted(set(CALLS) - {"resolve"})
        for when in ("before", "between", "after")
    ]
    jobs.append(started.enqueue("own_database"))
    assert {started.final(job)["outcome"] for job in jobs} == {"completed"}
