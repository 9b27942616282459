"""How an event stands with an endpoint: a sentence for each place where it can be."""

from __future__ import annotations

from dataclasses import fields

import pytest

from panel.cli.terminal import Terminal
from panel.cli.webhooks import told
from shared.webhooks.answers import LOUD
from shared.webhooks.explanation import ADVICE, Facts, explain
from shared.webhooks.records import Delivery

QUIET = {
    **{one.name: None for one in fields(Facts)},
    "event_type": "corpus.note.changed", "exposure": "webhook", "occurred_at": "2026-01-31T12",
    "fanned_out": True, "url": "https://h.example.org/", "patterns": ["corpus.*"], "wanted": True,
    "enabled": True, "endpoint_created_at": "2026-01-01T00", "behind": False, "own_fault": False,
    "fanout": "completed", "fanout_job": "7",
}  # fmt: skip
SENT = {**QUIET, "delivery_id": "1", "state": "pending", "attempts": 0, "tries": 0, "job_id": "9"}
LAST = {"code": "server_error", "status": 503, "result": "failed"}
GONE = {"enabled": False, "disabled_reason": "gone", "disabled_at": "T"}
NOBODY = " The endpoint has no contact that could be told by mail."


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"event_type": None, "exposure": None, "wanted": False},
         "There is no such event of yours: it was never recorded, or was pruned."),
        ({"exposure": "internal"},
         "Never sent: events of type corpus.note.changed do not leave the installation."),
        ({"wanted": False, "patterns": ["order.*", "a.b"]},
         "Not sent: it wants order.*, a.b, not corpus.note.changed."),
        ({"fanned_out": False, "fanout": None}, "Not yet: the event waits for the relay."),
        (GONE, "Not sent: the endpoint answered that it is gone, and is disabled since T;"
               " a replay sends it." + NOBODY),
        ({**GONE, "disabled_reason": "failing"}, "Not sent: the endpoint failed for five days, and is"
         " disabled since T; a replay sends it." + NOBODY),
        ({"occurred_at": "2025-12-31T23"},
         "Not sent: the endpoint was added after the event; a replay sends it."),
        *(({"fanout": ended}, (f"Not sent: the job that makes its deliveries was {ended};"
           " `weirkeeper jobs retry 7` makes them.")) for ended in ("discarded", "cancelled")),
        *(({"fanout": over}, ("Not sent: when the event was fanned out, the endpoint was disabled, or"
           " did not want its type; a replay sends it.")) for over in ("completed", "nobody")),
        *(({"fanout": state},
           "Not yet: the event was fanned out, and its deliveries are being made.")
          for state in ("pending", "retryable")),
    ],
)  # fmt: skip
def test_what_was_not_sent(given, sentence):
    assert explain(Facts(**{**QUIET, **given})).sentence == sentence


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"state": "delivered", "ended_at": "T", "status": 204}, "Delivered at T, answered with 204."),
        ({"state": "cancelled", "ended_at": "T"}, "Cancelled at T; redeliver sends it."),
        ({"state": "failed", "ended_at": "T", "tries": 3, **LAST}, ("Given up at T after 3 tries;"
         " last: server_error, status 503; redeliver sends it.")),
        ({**GONE, "disabled_reason": "manual", **LAST},
         "Held: the endpoint is paused since T; last: server_error, status 503."),
        ({**GONE, "disabled_reason": "blocked"}, "Held: the endpoint has a URL that may not be"
         " called here, and is disabled since T." + NOBODY),
        ({**GONE, "contact": "a@example.org"}, ("Held: the endpoint answered that it is gone, and is"
         " disabled since T. Its contact, a@example.org, is told of that, if mail is configured.")),
        ({"behind": True}, "Waits for an older event, for the endpoint wants them in order."),
        ({"busy_until": "T"}, "Waits while another request is under way, until T at most."),
        ({"not_before": "T", "failing_since": "S"},
         "Waits until T: the endpoint asked for a pause, or failed at another event." + NOBODY),
        ({"not_before": "T", **LAST}, ("Waits until T: the endpoint failed, and gets nothing for a"
         " moment; last: server_error, status 503.")),
        ({"not_before": "T", "code": "asked_to_wait", "status": 429, "result": "deferred"},
         "Waits until T: its Retry-After asked for that; last: asked_to_wait, status 429."),
        ({"own_fault": True}, ("The last run of its job failed here, not at the endpoint, and is tried"
         " again: `weirkeeper jobs explain 9` tells why.")),
        ({"next_at": "T", "tries": 2, "code": "connect_refused", "result": "failed"},
         "Tried 2 times; next try at T; last: connect_refused."),
        ({"rate": 6, "opens_at": "T"}, "Waits until T: the endpoint takes 6 requests a minute."),
        ({"opens_at": "T"}, "Waits for its turn."),
        ({"rate": 6, "failing_since": "S", "contact": "a@example.org"}, ("Waits for its turn. Its"
         " contact, a@example.org, is told when it has failed for long, if mail is configured.")),
    ],
)  # fmt: skip
def test_what_was_sent_or_waits(given, sentence):
    assert explain(Facts(**{**SENT, **given})).sentence == sentence


@pytest.mark.parametrize("code", sorted(LOUD))
def test_what_will_not_mend_itself_comes_with_advice(code):
    given = {"state": "failed", "ended_at": "T", "tries": 3, "code": code, "result": "failed"}
    sentence = explain(Facts(**{**SENT, **given})).sentence
    assert f"; last: {code} ({ADVICE[code]}); redeliver sends it." in sentence
    assert set(ADVICE) == LOUD


def test_the_facts_are_those_that_say_something():
    facts = explain(Facts(**{**SENT, "phases": {"dns": 1.5}})).facts
    assert (facts["phases"], facts["job_id"], facts["behind"]) == ({"dns": 1.5}, "9", False)
    assert "not_before" not in facts


def test_what_will_not_mend_itself_is_red_in_a_list(monkeypatch):
    monkeypatch.setattr(told, "here", lambda: Terminal(coloured=True, width=None))
    codes = [*sorted(LOUD), "client_error"]
    rows = [
        Delivery("1", "e", "1", "t", "auto", "failed", None, 1, 1, None, "T", None, code, 400)
        for code in codes
    ]
    lines = told.deliveries(rows).splitlines()[1:]
    assert [f"\x1b[31m{code} 400" in line for code, line in zip(codes, lines, strict=True)] == [
        *[True] * len(LOUD), False,
    ]  # fmt: skip
