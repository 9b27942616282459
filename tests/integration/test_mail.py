"""Letters through real SMTP: taken once, the same at each try, judged, and never without encryption."""

from __future__ import annotations

import socket
import ssl
from datetime import UTC, datetime

import pytest
import trustme

from shared.config.mail import Mail
from shared.errors import InvalidArguments
from tests.support.mail import MailServer
from workers.sideeffects.mail import smtp
from workers.sideeffects.mail.message import compose, header_text
from workers.sideeffects.mail.port import Letter
from workers.sideeffects.mail.smtp import SmtpMailer

WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
SENDER = "weirkeeper@example.org"


def letter(**fields):
    given = {"id": "e1", "to": "ann@example.org", "subject": "Größe", "written_at": WHEN}
    return Letter(**{**given, "text": "Grüße\n", "html": "<p>Grüße</p>", **fields})


def through(server, tls="none", **fields):
    host, _, port = server.at.rpartition(":")
    ca_file = fields.pop("ca_file", "")
    return SmtpMailer(Mail(host, int(port), tls, SENDER, **fields), ca_file)


def test_a_letter_arrives_and_is_the_same_at_each_try():
    with MailServer() as server:
        assert [through(server).send(letter()).sent for _ in range(2)] == ["taken", "taken"]
        assert through(server).send(letter(id="e2")).sent == "taken"
    first, again, other = server.letters
    assert first["message-id"] == again["message-id"] == "<e1@example.org>"
    assert other["message-id"] == "<e2@example.org>"
    assert server.raw[0] == server.raw[1]
    assert (first["from"], first["to"], first["subject"]) == (SENDER, "ann@example.org", "Größe")
    assert first.get_body(("plain",)).get_content().split() == ["Grüße"]
    assert first.get_body(("html",)).get_content().split() == ["<p>Grüße</p>"]


@pytest.mark.parametrize(
    ("step", "answer", "sent", "ours"),
    [
        ("answer_to", "550 no such mailbox", "never", False),
        ("answer_to", "451 greylisted", "later", False),
        ("answer", "554 no spam", "never", False),
        ("answer", "452 full", "later", False),
        ("answer", "530 log in first", "later", True),
    ],
)
def test_what_never_succeeds_is_told_apart_from_what_may(step, answer, sent, ours):
    with MailServer() as server:
        setattr(server, step, answer)
        told = through(server).send(letter())
    assert (told.sent, told.ours, server.raw) == (sent, ours, [])
    assert answer in told.why


def test_a_server_that_is_away_or_silent_may_come_back(monkeypatch, tcp_silence):
    monkeypatch.setattr(smtp, "TIMEOUT", 0.3)
    with MailServer() as server:
        gone = through(server)
    assert (gone.send(letter()).sent, gone.send(letter()).ours) == ("later", False)
    silent = SmtpMailer(Mail("127.0.0.1", tcp_silence, "none", SENDER))
    told = silent.send(letter())
    assert (told.sent, told.ours) == ("later", False)


@pytest.fixture
def tcp_silence():
    """A port where somebody listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """(a server's TLS, file of who vouches for it)."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    file = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(file))
    return context, str(file)


@pytest.mark.parametrize("tls", ["starttls", "always"])
def test_with_encryption_and_a_login(tls, authority):
    context, file = authority
    how = {"tls_context": context} if tls == "starttls" else {"ssl_context": context}
    who = {"user": "us", "password": "p:%/ x", "tls": tls}
    with MailServer(**how, auth_require_tls=tls == "starttls") as server:
        assert through(server, **who, ca_file=file).send(letter()).sent == "taken"
        assert server.logins == [("us", "p:%/ x")]
        told = through(server, **who).send(letter())
        assert (told.sent, told.ours) == ("later", True), "nobody vouches for it"
        assert "certificate verify failed" in told.why
        server.login_ok = False
        told = through(server, **who, ca_file=file).send(letter())
        assert (told.sent, told.ours, "p:%" in told.why) == ("later", True, False)
        assert told.why == "127.0.0.1: the login was refused (535)"
    assert len(server.raw) == 1
    with MailServer(auth_require_tls=False) as plain:
        told = through(plain, **{**who, "tls": "starttls"}).send(letter())
        assert (told.sent, told.ours) == ("later", True)
        assert told.why.startswith("127.0.0.1: it cannot do what is set: STARTTLS")
        assert (plain.raw, plain.logins) == ([], []), (
            "neither letter nor password goes in the clear"
        )


@pytest.mark.parametrize(
    "subject",
    [
        "a\r\nBcc: eve@example.org",
        "a\nb\rc\x00d\x85e\u2028f",
        "=?utf-8?q?=0ABcc:_eve@example.org?= x",
        "==??utf-8?q?x?=",
        "\udc80 half",
        "x" * 5000,
        "ä" * 300 + "\r\n\r\nbody",
    ],
)
def test_a_subject_cannot_become_another_header(subject):
    with MailServer() as server:
        assert through(server).send(letter(subject=subject)).sent == "taken"
    [found] = server.letters
    assert "bcc" not in found
    assert "=?" not in header_text(subject)
    assert found["subject"] == header_text(subject)
    assert found.get_body(("plain",)).get_content().split() == ["Grüße"]


@pytest.mark.parametrize(
    "to",
    [
        "ann@example.org\r\nBcc: eve@example.org", "ann@example.org, eve@example.org",
        "Ann <ann@example.org>", "änn@example.org", "ann@ex ample.org", "@example.org", "ann", "",
    ],
)  # fmt: skip
def test_what_is_no_plain_address_is_written_to_by_nobody(to):
    with pytest.raises(InvalidArguments, match="plain mail address"):
        compose(letter(to=to), SENDER)
