"""A URL that was allowed and is not any more: few tries, then the endpoint is disabled, nothing is lost."""

from __future__ import annotations

import pytest

from shared.errors import InvalidArguments
from shared.postgres.webhooks.endpoints import PostgresWebhooks
from shared.webhooks.policy import Policy
from shared.webhooks.rules import rules_of
from shared.webhooks.sealing import Sealer
from tests.support.hooks import LOCAL, SECRET, Hooks
from tests.support.mail import MailServer
from tests.support.receivers import Receiver, Recording
from tests.support.waiting import until

DENIED = {"WEIRKEEPER_OUTBOUND_DENY": "127.0.0.1"}
STATES = "select state from weirkeeper.delivery"


@pytest.fixture
def hooks(database_url):
    made = Hooks(database_url)
    yield made
    made.close()


def test_a_url_that_settings_forbid_disables_its_endpoint_and_holds_what_waits(hooks, programs):
    recording = Recording()
    with Receiver(recording) as receiver, MailServer() as mail:
        programs.start("relay", env=LOCAL)
        mails = {
            "WEIRKEEPER_SMTP_URL": f"smtp://{mail.at}?tls=none",
            "WEIRKEEPER_MAIL_FROM": "weirkeeper@example.org",
        }
        programs.start("workers", "notify", env={**LOCAL, **mails})
        strict = programs.start("workers", "webhook", env={**LOCAL, **DENIED})
        one = hooks.endpoint(
            url=f"http://127.0.0.1:{receiver.port}/",
            contact="ann@example.org",
            schedule=(1.0, 1.0, 1.0, 1.0),
        )
        event = hooks.event()

        def found():
            return hooks.webhooks.get("me", one)

        until(lambda: found().disabled_reason == "blocked", 60, "it is disabled")
        [delivery] = hooks.rows("select id::text, state, attempts from weirkeeper.delivery")
        assert (delivery["state"], delivery["attempts"]) == ("pending", 3)
        codes = [each.code for each in hooks.webhooks.attempts("me", delivery["id"])]
        assert codes == ["blocked_target"] * 3
        told = hooks.webhooks.explain("me", one, event).sentence
        assert told.startswith("Held: the endpoint has a URL that may not be called here")
        [letter] = until(lambda: mail.letters, 30, "its contact is told")
        assert "its URL may not be called" in letter.get_body(("plain",)).get_content()
        assert strict.terminate() == 0
        programs.start("workers", "webhook", env=LOCAL)
        hooks.webhooks.resume("me", one)
        until(
            lambda: [row["state"] for row in hooks.rows(STATES)] == ["delivered"], 30, "it is sent"
        )
    assert len(recording.requests) == 1


def test_what_would_be_blocked_at_once_is_not_resumed(hooks):
    one = hooks.endpoint()
    elsewhere = PostgresWebhooks(hooks.conn, rules_of(Policy(), Sealer([SECRET])))
    hooks.webhooks.pause("me", one)
    elsewhere.resume("me", one)  # it may not be called there, but nobody has found out
    assert hooks.webhooks.get("me", one).enabled
    hooks.conn.execute("update weirkeeper.endpoint set enabled = false, disabled_at = now(),"
                       " disabled_reason = 'blocked'")  # fmt: skip
    with pytest.raises(InvalidArguments, match=r"url: scheme: expected https"):
        elsewhere.resume("me", one)
    assert not hooks.webhooks.get("me", one).enabled
    hooks.webhooks.resume("me", one)
    assert hooks.webhooks.get("me", one).enabled
