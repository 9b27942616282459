"""The guarded client against receivers over real sockets that are hostile in every way."""

from __future__ import annotations

import ssl
import threading
import time
import warnings
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest

from shared.config.settings import Settings
from shared.errors import ConfigurationError
from tests.support import receivers as r
from tests.support.calls import LONG, SHORT, measured, post
from tests.support.hostile import BOMBS, HOSTILE
from tests.support.waiting import lateness
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import WEBHOOK, Limits, Outgoing

MOST_MEMORY = 20 * 1024 * 1024


@pytest.fixture(scope="module")
def authority() -> r.Authority:
    return r.Authority()


@pytest.fixture
def ca_file(authority, tmp_path) -> str:
    return authority.write(str(tmp_path / "ca.pem"))


@pytest.fixture
def client(ca_file) -> GuardedClient:
    return GuardedClient(r.local_policy(), ca_file=ca_file, resolver=r.Names())


# Receivers that are hostile


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_receiver(client, authority, case, scheme):
    behaviour, error, status, ended = HOSTILE[case]
    context = authority.server(r.NAME) if scheme == "https" else None
    with r.Receiver(behaviour, context) as receiver:
        url = f"{scheme}://{r.NAME}:{receiver.port}/"
        ends = SHORT if "timeout" in error + ended else LONG
        found, seconds, late, grown = measured(client, url, limits=ends)
    assert (found.error, found.status) == (error, status), found.hidden
    if status is not None:
        assert found.ended in ended.split()
    if case.startswith("bomb of"):
        assert found.body == BOMBS[case.removeprefix("bomb of ")][: len(found.body)]
    assert seconds <= ends.seconds + 0.5 + late
    assert grown <= MOST_MEMORY


def drip(payload: bytes) -> r.Behaviour:
    """A byte every two seconds: no single read ever takes long."""

    def behave(peer: r.Peer) -> None:
        peer.connection.recv(65_536)
        peer.trickle((payload[i : i + 1] for i in range(len(payload))), every=2.0)

    return behave


@pytest.mark.slow
def test_a_slow_drip_ends_with_the_call(client, authority):
    """With the limits of webhooks; all at once, for they all take 10 s."""
    head = b"HTTP/1.1 200 OK\r\n"
    cases = {
        "head": ("http", drip(head), None),
        "head in TLS": ("https", drip(head), authority.server(r.NAME)),
        "body": ("http", then_drip(head + b"Content-Length: 99\r\n\r\n"), None),
        "chunks": ("http", then_drip(head + b"Transfer-Encoding: chunked\r\n\r\n9\r\n"), None),
        "no end": ("http", then_drip(head + b"\r\n"), None),
        "handshake": ("https", drip(b"\x16\x03\x03\x3f\xff\x02\x00\x3f\xfb\x03\x03"), None),
    }
    found: dict[str, tuple[str, float]] = {}

    def call(case: str, url: str) -> None:
        begun = time.monotonic()
        exchange = post(client, url, limits=WEBHOOK)
        found[case] = (exchange.error or exchange.ended, time.monotonic() - begun)

    with ExitStack() as stack, lateness(time.monotonic) as late:
        calls = []
        for case, (scheme, behaviour, context) in cases.items():
            receiver = stack.enter_context(r.Receiver(behaviour, context))
            url = f"{scheme}://{r.NAME}:{receiver.port}/"
            calls.append(threading.Thread(target=call, args=(case, url)))
        for one in calls:
            one.start()
        for one in calls:
            one.join(60)
    assert {case: how for case, (how, _) in found.items()} == {
        "head": "response_timeout", "head in TLS": "response_timeout", "body": "timeout",
        "chunks": "timeout", "no end": "timeout", "handshake": "tls_timeout",
    }  # fmt: skip
    longest = max(seconds for _, seconds in found.values())
    assert longest <= WEBHOOK.seconds + 0.5 + 2 * late.worst


def then_drip(head: bytes) -> r.Behaviour:
    """The head at once, the rest slowly."""

    def behave(peer: r.Peer) -> None:
        peer.request()
        peer.send(head)
        peer.trickle(iter(lambda: b"b", b""), every=2.0)

    return behave


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_receiver_that_never_reads(client, authority, scheme):
    context = authority.server(r.NAME) if scheme == "https" else None
    with r.Receiver(r.never_reads, context, small=True) as receiver:
        url = f"{scheme}://{r.NAME}:{receiver.port}/"
        found, seconds, late, _ = measured(client, url, bytes(20_000_000))
    assert found.error == "write_timeout"
    assert "ttfb" not in found.times
    assert seconds <= SHORT.seconds + 0.5 + late


@pytest.mark.parametrize(
    ("behaviour", "errors"),
    [
        (r.never_speaks_tls, {"tls_timeout"}),
        (r.trickled_tls, {"tls_timeout"}),
        (r.endless_tls, {"response_too_large", "tls_failed"}),
        (lambda peer: peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), {"tls_failed"}),
        (lambda peer: peer.connection.recv(1), {"tls_failed", "connection_reset"}),
    ],
    ids=["silent", "trickled", "endless", "plain", "hangs up"],
)
def test_a_receiver_that_is_hostile_in_tls(client, behaviour, errors):
    with r.Receiver(behaviour) as receiver:
        found, seconds, late, grown = measured(client, f"https://{r.NAME}:{receiver.port}/")
    assert found.error in errors
    assert seconds <= SHORT.seconds + 0.5 + late
    assert grown <= MOST_MEMORY


def test_certificates(client, authority):
    yesterday = datetime.now(UTC) - timedelta(days=1)
    cases = {
        "tls_untrusted": r.Authority().server(r.NAME),
        "tls_wrong_name": authority.server("other.example.org"),
        "tls_expired": authority.server(r.NAME, not_after=yesterday),
    }
    for error, context in cases.items():
        recording = r.Recording()
        with r.Receiver(recording, context) as receiver:
            found = post(client, f"https://{r.NAME}:{receiver.port}/")
        assert found.error == error
        assert recording.requests == [], "it was sent to somebody unknown"


def test_old_tls_is_refused(client, authority):
    context = authority.server(r.NAME)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):  # that it is old is the point
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with r.Receiver(r.Recording(), context) as receiver:
        assert post(client, f"https://{r.NAME}:{receiver.port}/").error == "tls_failed"


def test_an_authority_that_nobody_added_is_not_believed(authority):
    alone = GuardedClient(r.local_policy(), resolver=r.Names())
    with r.Receiver(r.Recording(), authority.server(r.NAME)) as receiver:
        assert post(alone, f"https://{r.NAME}:{receiver.port}/").error == "tls_untrusted"


def test_a_bundle_that_holds_nothing_is_refused(tmp_path):
    empty = tmp_path / "ca.pem"
    empty.write_text("nothing")
    with pytest.raises(ConfigurationError, match="WEIRKEEPER_OUTBOUND_CA"):
        Settings.load({"WEIRKEEPER_OUTBOUND_CA": str(empty), "WEIRKEEPER_HOME": "/nowhere"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 200])
@pytest.mark.parametrize("field", ["Location", "Refresh"])
def test_redirects_are_not_followed(client, status, field):
    with r.Receiver(r.Recording()) as inside:
        for where in (f"http://127.0.0.1:{inside.port}/", "file:///etc/passwd"):
            there = f"0; url={where}" if field == "Refresh" else where
            told = f"HTTP/1.1 {status} X\r\n{field}: {there}\r\nContent-Length: 0\r\n\r\n"
            with r.Receiver(r.answering(told.encode())) as receiver:
                assert post(client, f"http://{r.NAME}:{receiver.port}/").status == status
                assert receiver.connections == 1
        assert inside.connections == 0


def test_a_call_does_not_outlive_its_lease(client):
    with r.Receiver(r.never_answers) as receiver, lateness(time.monotonic) as late:
        begun = time.monotonic()
        outgoing = Outgoing("POST", f"http://{r.NAME}:{receiver.port}/")
        found = client.send(outgoing, until=begun + 0.5)
        seconds = time.monotonic() - begun
    assert found.error == "response_timeout"
    assert seconds <= 1.0 + 2 * late.worst
    assert client.send(outgoing, until=begun).error == "dns_timeout"


def test_what_a_call_costs_is_seen(client):
    """The meter of this file is none that always says nothing: an answer that is kept shows."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n" + bytes(60_000_000)
    wide = Limits(seconds=60, wire_bytes=70_000_000, body_bytes=60_000_000, body_seconds=60)
    with r.Receiver(r.answering(answer)) as receiver:
        found, seconds, _, grown = measured(
            client, f"http://{r.NAME}:{receiver.port}/", limits=wide
        )
    assert found.ended == "whole"
    assert grown > 40_000_000
    assert seconds > 0


CANARY = "canary-of-a-secret"


def test_no_secret_of_either_side_is_logged_or_shown(client, authority, caplog):
    caplog.set_level("DEBUG")
    told = f"HTTP/1.1 302 X\r\nSet-Cookie: {CANARY}\r\nLocation: /?t={CANARY}\r\n\r\n".encode()
    behaviours = [r.answering(told), r.answering(), r.answering(b"no HTTP " + CANARY.encode())]
    for behaviour in behaviours:
        for scheme, context in (("http", None), ("https", authority.server(r.NAME))):
            with r.Receiver(behaviour, context) as receiver:
                url = f"{scheme}://{r.NAME}:{receiver.port}/?token={CANARY}"
                outgoing = Outgoing("POST", url, [("authorization", CANARY)], CANARY.encode())
                shown = repr((outgoing, client.send(outgoing, limits=LONG)))
            assert CANARY not in shown
    for url in (f"https://me:{CANARY}@h.example.org/", f"https://h.example.org/\t{CANARY}"):
        assert CANARY not in repr(client.send(Outgoing("POST", url)))
    assert CANARY not in caplog.text
