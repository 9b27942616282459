"""Addresses: this machine only, and a port that is taken is told clearly."""

from __future__ import annotations

import socket

import pytest

from shared.errors import ConfigurationError
from shared.services import web


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_addresses_may_be_bound(host):
    assert web.check_loopback(host) == host


def test_localhost_is_an_address_without_asking_anybody():
    assert web.check_loopback("localhost") == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "", "example.org", "127.0.0.1.x"])
def test_nothing_wider_may_be(host):
    with pytest.raises(ConfigurationError, match="WEIRKEEPER_HOST: expected a loopback address"):
        web.check_loopback(host)


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
