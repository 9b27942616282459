"""Addresses: this machine only, and a port that is taken is told clearly. Callers: how many."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from starlette.responses import JSONResponse

from shared.config.loopback import check_loopback
from shared.errors import ConfigurationError
from shared.services import web
from shared.services.admission import HEALTH, REQUESTS
from shared.services.routing import application, health
from shared.services.stop import StopSignal
from tests.support.waiting import until


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_addresses_may_be_bound(host):
    assert check_loopback(host) == host


def test_localhost_is_an_address_without_asking_anybody():
    assert check_loopback("localhost") == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "", "example.org", "127.0.0.1.x"])
def test_nothing_wider_may_be(host):
    with pytest.raises(ConfigurationError, match="WEIRKEEPER_HOST: expected a loopback address"):
        check_loopback(host)


def test_a_free_port_is_found_and_told():
    with web.bind("127.0.0.1", 0, "PORT") as bound:
        host, _, port = web.address(bound).rpartition(":")
        assert host == "127.0.0.1"
        assert socket.create_connection((host, int(port)), 5).close() is None


def test_a_taken_port_names_its_setting():
    with web.bind("127.0.0.1", 0, "PORT") as bound:
        port = bound.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"PORT: expected a free port .* got {port}"):
            web.bind("127.0.0.1", port, "PORT")


def test_addresses_of_version_6_stand_in_brackets():
    try:
        bound = web.bind("::1", 0, "PORT")
    except ConfigurationError:
        pytest.skip("this machine has no IPv6")
    with bound:
        assert web.address(bound).startswith("[::1]:")


def test_health_is_answered_when_everything_else_is_full():
    """Over real sockets: 256 requests under way, then one more of each kind."""
    stop, end, begun = StopSignal(), asyncio.Event(), []

    async def hang(_request):
        begun.append(1)
        await end.wait()
        return JSONResponse({})

    async def well(_request):
        return health("")

    app = application({"/hang": hang, **dict.fromkeys(HEALTH, well)}, ())
    with web.bind("127.0.0.1", 0, "PORT") as bound, ThreadPoolExecutor(1) as pool:
        address = web.address(bound)
        served = pool.submit(web.serve, app, bound, stop, end.set)
        host, _, port = address.rpartition(":")
        callers = [socket.create_connection((host, int(port)), 5) for _ in range(REQUESTS)]
        try:
            for caller in callers:
                caller.sendall(b"GET /hang HTTP/1.1\r\nhost: a\r\n\r\n")
            until(lambda: len(begun) == REQUESTS, 10, "all are under way")
            for path in HEALTH:
                assert httpx.get(f"http://{address}{path}").json() == {"ok": True}
            refused = httpx.get(f"http://{address}/hang")
            assert (refused.status_code, refused.json()["reason"]) == (503, "full")
            assert "256 requests are under way" in refused.json()["error"]
            assert refused.headers["retry-after"] == "1"
        finally:
            stop.request()
            served.result(10)
            for caller in callers:
                caller.close()
