"""The listener before callers who connect and say nothing whole, over real sockets."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from itertools import cycle

import httpx
import pytest

from shared.services.admission import CONNECTIONS, REQUEST_SECONDS
from tests.support.callers import Caller, descriptors
from tests.support.rows import address_when_ready, enqueue, session
from tests.support.waiting import until

HALF = (
    b"",
    b"GET /livez HTTP/1.1\r\n",
    b"GET /livez HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n",
)


@pytest.fixture
def listener(programs):
    return programs.start("listener")


@pytest.fixture
def address(listener, database_url):
    return address_when_ready(database_url, "listener")


def test_half_requests_keep_nobody_out_and_are_ended(address, listener, database_url):
    """More of them than requests may be under way, and more than connections may be open."""
    with session(database_url) as conn:
        job_id = enqueue(conn)
    before = descriptors(listener.pid)
    host, _, port = address.rpartition(":")
    for count in (300, 600):
        crowd = [socket.create_connection((host, int(port)), 10) for _ in range(count)]
        for one, said in zip(crowd, cycle(HALF)):
            with contextlib.suppress(ConnectionError):  # it gave way already
                one.sendall(said)
        with httpx.Client(base_url=f"http://{address}", timeout=2) as newcomer:
            assert newcomer.get("/livez").json() == {"ok": True}
            assert newcomer.get("/readyz").json() == {"ok": True}
            assert newcomer.get(f"/v1/jobs/{job_id}/wait?max=0").status_code == 202
        assert descriptors(listener.pid) <= before + CONNECTIONS + 2
        until(lambda: descriptors(listener.pid) <= before + 2, 8, "all of them are ended")
        for one in crowd:
            one.close()
    assert "Traceback" not in listener.text()


def test_a_request_byte_by_byte_is_ended_too(address):
    """A byte now and then does not prolong the time that a request has."""
    caller = Caller(address, "/livez")
    assert caller.answer_kept()[0] == 200
    begun = time.monotonic()
    with contextlib.suppress(ConnectionError), caller.socket as opened:
        for byte in b"GET /livez HTTP/1.1\r\n" + b"x: y\r\n" * 100:
            opened.sendall(bytes([byte]))
            if select.select([opened], [], [], 0.2)[0] and not opened.recv(1):
                break
    assert REQUEST_SECONDS - 0.5 < time.monotonic() - begun < REQUEST_SECONDS + 2


def test_what_is_no_http_is_refused_like_everything_else(address):
    caller = Caller(address, "/livez HTTP/1.1\r\nno header\r\n\r\n")
    status, body = caller.answer()
    assert status == 400
    assert "expected an HTTP request" in body["error"]
