"""The guarded client against receivers over real sockets that are hostile in every way."""

from __future__ import annotations

import gzip
import ssl
import time
import warnings
import zlib
from datetime import UTC, datetime, timedelta

import pytest

from shared.config.settings import Settings
from shared.errors import ConfigurationError
from tests.support import receivers as r
from tests.support.calls import LONG, SHORT, measured, post
from workers.sideeffects.http.client import GuardedClient
from workers.sideeffects.http.exchange import Outgoing

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


BOMB = zlib.compressobj(9, zlib.DEFLATED, 31)
BOMBS = {
    "gzip": BOMB.compress(bytes(50_000_000)) + BOMB.flush(),
    "deflate": zlib.compress(bytes(50_000_000), 9),
    "br": b"\x5b\xff\xff\xff" * 5_000,
    "zstd": b"\x28\xb5\x2f\xfd" * 5_000,
    "gzip, gzip, gzip": gzip.compress(gzip.compress(gzip.compress(bytes(20_000_000)))),
}


def bomb(encoding: str) -> r.Behaviour:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: "
    body = BOMBS[encoding]
    return r.answering(f"{head}{len(body)}\r\n\r\n".encode() + body)


def answer(text: bytes) -> r.Behaviour:
    return r.answering(b"HTTP/1.1 " + text)


# (behaviour, the error, status, how the body may end)
HOSTILE = {
    "never answers": (r.never_answers, "response_timeout", None, ""),
    "trickled headers": (r.trickled_headers, "response_timeout", None, ""),
    "endless headers": (r.endless_headers, "response_too_large", None, ""),
    "one endless header": (r.one_endless_header, "response_too_large", None, ""),
    "endless 1xx": (r.endless_informational, "response_too_large", None, ""),
    "trickled 1xx": (r.trickled_informational, "response_timeout", None, ""),
    "trickled body": (r.trickled_body, "", 200, "timeout"),
    "trickled chunks": (r.trickled_chunks, "", 200, "timeout"),
    "silent body": (r.silent_body, "", 200, "timeout"),
    "250 MB body": (r.huge_body, "", 200, "too_large"),
    **{f"bomb of {name}": (bomb(name), "", 200, "whole too_large") for name in BOMBS},
    "resets": (r.resets, "connection_reset", None, ""),
    "hangs up": (r.answering(), "connection_reset", None, ""),
    "hangs up in the head": (answer(b"200 OK\r\nX-A: "), "connection_reset", None, ""),
    "101": (
        answer(b"101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        "protocol_error",
        None,
        "",
    ),
    "two lengths": (
        answer(b"200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"),
        "protocol_error",
        None,
        "",
    ),
    "length and chunks": (
        answer(b"200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        "",
        200,
        "whole",
    ),
    "unknown framing": (
        answer(b"200 OK\r\nTransfer-Encoding: x\r\n\r\n"),
        "protocol_error",
        None,
        "",
    ),
    "NUL in a header": (answer(b"200 OK\r\nX-A: a\x00b\r\n\r\n"), "protocol_error", None, ""),
    "header without a name": (answer(b"200 OK\r\n: b\r\n\r\n"), "protocol_error", None, ""),
    "not ASCII in a header": (
        answer("200 OK\r\nX-A: é中\r\nContent-Length: 0\r\n\r\n".encode()),
        "",
        200,
        "whole",
    ),
    "short body": (answer(b"200 OK\r\nContent-Length: 9\r\n\r\nab"), "", 200, "cut"),
    "short chunk": (
        answer(b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab"),
        "",
        200,
        "cut",
    ),
    "bad chunk": (answer(b"200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"), "", 200, "cut"),
    "no HTTP at all": (r.answering(b"SSH-2.0-OpenSSH_9\r\n\r\n"), "protocol_error", None, ""),
    "HTTP/2": (r.answering(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "protocol_error", None, ""),
    "status of two digits": (answer(b"20 OK\r\n\r\n"), "protocol_error", None, ""),
}


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
    if case.startswith("bomb"):
        assert found.body == BOMBS[case.removeprefix("bomb of ")][: len(found.body)]
    assert seconds <= ends.seconds + 0.5 + late
    assert grown <= MOST_MEMORY


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
    found = Settings.load({"WEIRKEEPER_OUTBOUND_CA": str(empty), "WEIRKEEPER_HOME": "/nowhere"})
    with pytest.raises(ConfigurationError, match="WEIRKEEPER_OUTBOUND_CA"):
        GuardedClient(r.local_policy(), ca_file=found.outbound.ca_file)


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
    with r.Receiver(r.never_answers) as receiver, r.lateness(time.monotonic) as late:
        begun = time.monotonic()
        outgoing = Outgoing("POST", f"http://{r.NAME}:{receiver.port}/")
        found = client.send(outgoing, until=begun + 0.5)
        seconds = time.monotonic() - begun
    assert found.error == "response_timeout"
    assert seconds <= 1.0 + 2 * late.worst
    assert client.send(outgoing, until=begun).error == "dns_timeout"
