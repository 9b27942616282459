"""What the job of a notice says of mail that does not go out."""

from __future__ import annotations

import logging

import pytest

from shared.jobs.outcomes import Completed, Discard, Retry
from tests.support.handling import load_event
from tests.support.hooks import Handling, Hooks, answered
from tests.support.mail import MailServer
from workers.handlers.notify import webhook_notice


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


@pytest.fixture
def mail(monkeypatch):
    """A mail server, and the settings that name it."""
    with MailServer() as server:
        monkeypatch.setenv("WEIRKEEPER_SMTP_URL", f"smtp://{server.at}?tls=none")
        monkeypatch.setenv("WEIRKEEPER_MAIL_FROM", "weirkeeper@example.org")
        webhook_notice.mailer.cache_clear()
        yield server
    webhook_notice.mailer.cache_clear()


class Logged(Handling):
    """A context with a log."""

    log = logging.getLogger("job.webhook.notice")


def notice(hooks, **fields):
    """The job's answer to the event that an endpoint is gone."""
    one = hooks.endpoint(**fields)
    hooks.fan_out(hooks.event())
    gone = answered(result="failed", code="gone", delay=0.0, disable="gone", status=410)
    hooks.deliveries.settle(hooks.leased(hooks.delivery(one)["id"]), gone)
    query = "select id::text from weirkeeper.event where type = 'webhook.endpoint.disabled'"
    [row] = hooks.rows(query)
    return webhook_notice.handle(Logged(hooks.conn), {}, load_event(hooks.conn, row["id"]))


CONTACT = {"contact": "ann@example.org"}


def test_a_setting_that_has_to_be_mended_is_told_loudly_and_tried_again(hooks, mail, caplog):
    mail.answer = "535 log in first"
    found = notice(hooks, **CONTACT)
    assert found == Retry("mail: 127.0.0.1: 535 log in first; mend WEIRKEEPER_SMTP_URL")
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "no mail goes out until WEIRKEEPER_SMTP_URL is mended" in caplog.text


def test_what_may_go_out_later_is_tried_again_quietly(hooks, mail, caplog):
    mail.answer = "451 greylisted"
    assert notice(hooks, **CONTACT) == Retry("mail: 127.0.0.1: 451 greylisted")
    assert caplog.records == []


def test_what_will_never_go_out_is_given_up_at_once(hooks, mail):
    mail.answer_to = "550 no such mailbox"
    assert notice(hooks, **CONTACT) == Discard("mail: 127.0.0.1: 550 no such mailbox")


def test_without_a_contact_or_mail_the_result_says_so(hooks, mail, monkeypatch):
    assert notice(hooks) == Completed({"sent": False, "why": webhook_notice.NO_CONTACT})
    assert mail.raw == []


def test_without_mail_the_result_says_so(hooks, monkeypatch):
    webhook_notice.mailer.cache_clear()
    for name in ("WEIRKEEPER_SMTP_URL", "WEIRKEEPER_MAIL_FROM"):
        monkeypatch.delenv(name, raising=False)
    found = notice(hooks, **CONTACT)
    webhook_notice.mailer.cache_clear()
    assert found == Completed({"sent": False, "why": webhook_notice.NO_MAIL})


def test_a_letter_that_is_taken(hooks, mail):
    assert notice(hooks, **CONTACT) == Completed({"sent": True})
    assert [one["to"] for one in mail.letters] == ["ann@example.org"]
