"""What the guarded client sends, and what it keeps of an answer."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import ExitStack

import httpcore
import pytest

from tests.gates.source import ROOT
from tests.support import receivers as r
from tests.support.calls import post
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Limits, Outgoing


@pytest.fixture(scope="module")
def authority() -> r.Authority:
    return r.Authority()


@pytest.fixture
def ca_file(authority, tmp_path) -> str:
    return authority.write(str(tmp_path / "ca.pem"))


@pytest.fixture
def client(ca_file) -> GuardedClient:
    return GuardedClient(r.local_policy(), ca_file=ca_file, resolver=r.Names())


# What is sent


def test_a_request_over_plain_http(client):
    recording = r.Recording(b"HTTP/1.1 202 Accepted\r\nX-B: 2\r\nContent-Length: 4\r\n\r\ndone")
    with r.Receiver(recording) as receiver:
        found = post(client, f"http://{r.NAME}:{receiver.port}/hook?x=1", b'{"a":1}')
    assert (found.status, found.body, found.ended) == (202, b"done", "whole")
    assert found.header("x-b") == "2"
    assert found.peer == f"127.0.0.1:{receiver.port}"
    head, _, body = recording.requests[0].partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /hook?x=1 HTTP/1.1",
        b"Host: " + f"{r.NAME}:{receiver.port}".encode(),
        b"x-a: 1",
        b"Content-Length: 7",
    ]
    assert body == b'{"a":1}'


def test_a_request_over_tls_keeps_the_name(client, authority):
    seen: list[str] = []
    context = authority.server(r.NAME)
    context.sni_callback = lambda _tls, name, _context: seen.append(name)
    recording = r.Recording()
    with r.Receiver(recording, context) as receiver:
        found = post(client, f"https://Receiver.Example.ORG.:{receiver.port}/")
    assert found.status == 200, found
    assert seen == [r.NAME]
    assert f"Host: {r.NAME}:{receiver.port}\r\n".encode() in recording.requests[0]
    assert list(found.times) == ["dns", "connect", "tls", "write", "ttfb", "body"]
    assert all(seconds >= 0 for seconds in found.times.values())


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as found:
            found.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_address_instead_of_a_name(client, authority, host):
    if ":" in host and not has_ipv6():
        pytest.skip("no IPv6 here")
    shown = f"[{host}]" if ":" in host else host
    with r.Receiver(r.Recording(), authority.server(host), host) as receiver:
        found = post(client, f"https://{shown}:{receiver.port}/")
        assert found.status == 200, found
    with r.Receiver(r.Recording(), authority.server(r.NAME), host) as receiver:
        assert post(client, f"https://{shown}:{receiver.port}/").error == "tls_wrong_name"


def test_the_environment_changes_nothing(client, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSLKEYLOGFILE"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
        monkeypatch.setenv(name.lower(), "http://127.0.0.1:1")
    recording = r.Recording(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nContent-Length: 0\r\n\r\n")
    with r.Receiver(recording) as receiver:
        for _ in range(2):
            assert post(client, f"http://{r.NAME}:{receiver.port}/").status == 200
        assert receiver.connections == 2, "a connection was kept"
    assert b"cookie" not in recording.requests[1].lower()


def test_a_large_body_arrives_whole(client, authority):
    recording = r.Recording()
    body = bytes(range(256)) * 4096
    with ExitStack() as stack:
        plain = stack.enter_context(r.Receiver(recording))
        safe = stack.enter_context(r.Receiver(recording, authority.server(r.NAME)))
        for scheme, receiver in (("http", plain), ("https", safe)):
            url = f"{scheme}://{r.NAME}:{receiver.port}/"
            assert post(client, url, body).status == 200
    assert [got.partition(b"\r\n\r\n")[2] for got in recording.requests] == [body, body]


def test_a_header_that_cannot_be_sent_is_our_own_fault(client):
    with r.Receiver(r.Recording()) as receiver, pytest.raises(httpcore.LocalProtocolError):
        client.send(Outgoing("POST", f"http://127.0.0.1:{receiver.port}/", [("x-a", "1\r\nb: 2")]))


def test_what_is_kept_of_headers(client):
    lines = b"".join(b"X-%d: %s\r\n" % (i, b"v" * 200) for i in range(100))
    answer = (
        b"HTTP/1.1 302 Found\r\nSet-Cookie: session=canary\r\nX-Api-Key: canary\r\n"
        b"Location: https://h.example.org/a?token=canary\r\n" + lines + b"\r\n"
    )
    with r.Receiver(r.answering(answer)) as receiver:
        found = post(client, f"http://{r.NAME}:{receiver.port}/")
    assert "canary" not in repr(found.headers)
    assert found.header("location") == "https://h.example.org/a?***"
    assert sum(len(name) + len(value) for name, value in found.headers) <= 8 * 1024
    many = b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 100 + b"Content-Length: 0\r\n\r\n"
    with r.Receiver(r.answering(many)) as receiver:
        assert len(post(client, f"http://{r.NAME}:{receiver.port}/").headers) == 64


def test_limits_may_be_wider(client):
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"b" * 300_000
    wide = Limits(seconds=20, wire_bytes=400_000, body_bytes=300_000, body_seconds=20)
    with r.Receiver(r.answering(answer)) as receiver:
        found = post(client, f"http://{r.NAME}:{receiver.port}/", limits=wide)
        assert (len(found.body), found.ended) == (300_000, "whole")
        narrow = Limits(seconds=20, wire_bytes=200_000, body_bytes=300_000)
        found = post(client, f"http://{r.NAME}:{receiver.port}/", limits=narrow)
        assert (found.status, found.ended) == (200, "too_large")


def test_no_call_while_the_jobs_transaction_is_open(database_url):
    """The watch of a job's child sees this client, too; run apart, for a hook cannot be taken out."""
    script = (
        "from shared.postgres.driver.connect import connect\n"
        "from shared.postgres.driver.network_guard import watch_network\n"
        "from shared.errors import NetworkInTransaction\n"
        "from tests.support import receivers as r\n"
        "from tests.support.calls import post\n"
        "from workers.sideeffects.http.client import GuardedClient\n"
        f"conn = connect({database_url!r}, 'test')\n"
        "watch_network(lambda: conn)\n"
        "client = GuardedClient(r.local_policy(), resolver=r.Names())\n"
        "with r.Receiver(r.Recording()) as receiver:\n"
        "    url = f'http://{r.NAME}:{receiver.port}/'\n"
        "    assert post(client, url).status == 200\n"
        "    with conn.transaction():\n"
        "        conn.execute('select 1')\n"
        "        try:\n"
        "            post(client, url)\n"
        "        except NetworkInTransaction:\n"
        "            print('refused')\n"
        "    assert receiver.connections == 1\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "refused\n", done.stderr
