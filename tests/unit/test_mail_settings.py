"""The settings of mail: read, refused, and never shown with the password."""

from __future__ import annotations

import json

import pytest

from shared.config.env import environment_of_children
from shared.config.mail import Mail
from shared.config.settings import Settings
from shared.errors import ConfigurationError

FROM = "weirkeeper@example.org"


def load(url, sender=FROM):
    return Settings.load({"WEIRKEEPER_SMTP_URL": url, "WEIRKEEPER_MAIL_FROM": sender})


@pytest.mark.parametrize(
    ("url", "mail"),
    [
        ("smtp://mx", Mail("mx", 587, "starttls", FROM)),
        ("smtps://u%40x:p%2F@mx:1465", Mail("mx", 1465, "always", FROM, "u@x", "p/")),
        ("smtp://mx:25?tls=none", Mail("mx", 25, "none", FROM)),
        ("", None),
    ],
)
def test_read(url, mail):
    assert load(url, FROM if url else "").mail == mail


@pytest.mark.parametrize(
    ("url", "sender"),
    [
        ("smtp://mx", ""), ("", FROM), ("smtp://mx", "Us <us@example.org>"), ("mx:25", FROM),
        ("http://mx", FROM), ("smtp://mx/x", FROM), ("smtp://mx:99999", FROM), ("smtp://", FROM),
        ("smtp://u:canary@mx?tls=none", FROM), ("smtps://mx?tls=none", FROM),
        ("smtps://u:canary%C3%A4@mx", FROM),
    ],
)  # fmt: skip
def test_refused_and_no_password_told(url, sender):
    with pytest.raises(ConfigurationError) as refused:
        load(url, sender)
    assert "canary" not in str(refused.value)


def test_shown_without_the_password_or_why_there_is_none():
    shown = load("smtps://us:canary@mx").describe()
    assert "canary" not in json.dumps(shown, default=str)
    assert shown["mail"] == f"from {FROM} through mx:465 (TLS: always, as us)"
    assert "WEIRKEEPER_SMTP_URL" in str(Settings.load({}).describe()["mail"])


def test_children_of_other_queues_have_neither(monkeypatch):
    monkeypatch.setenv("WEIRKEEPER_SMTP_URL", "smtp://mx")
    monkeypatch.setenv("WEIRKEEPER_MAIL_FROM", FROM)
    assert Settings.load(environment_of_children("notify", ())).mail is not None
    assert Settings.load(environment_of_children("webhook", ())).mail is None
