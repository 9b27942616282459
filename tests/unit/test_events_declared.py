"""Event types and globs: what a declaration means when it says little."""

from __future__ import annotations

import pytest

from shared.app import load_app
from shared.events.globs import matches
from shared.events.type import EventType
from shared.site.app import app as site


@pytest.mark.parametrize(
    ("glob", "name", "expected"),
    [
        ("order.paid", "order.paid", True),
        ("order.paid", "order.paid.twice", False),
        ("order.paid", "order", False),
        ("order.paid", "order_paid", False),
        ("order.*", "order.paid", True),
        ("order.*", "order.line.added", True),
        ("order.*", "order", False),
        ("order.*", "orders.paid", False),
        ("*", "order", True),
        ("*", "order.line.added", True),
        ("*.paid", "order.paid", True),
        ("*.paid", "shop.order.paid", False),
        ("*.paid", "paid", False),
        ("order.*.added", "order.line.added", True),
        ("order.*.added", "order.line.tax.added", False),
        ("order.*.added", "order.added", False),
        ("*.*", "order", False),
        ("*.*", "order.paid", True),
        ("*.*", "order.line.added", True),
        ("*.line.*", "order.line.tax.added", True),
    ],
)
def test_globs(glob, name, expected):
    assert matches(glob, name) is expected


def test_nothing_leaves_the_application_unless_it_says_so():
    assert EventType("order.paid", "An order was paid.", "order/<id>").exposure == "internal"


SITE = {
    "corpus.note": ("changed",),
    "webhook": ("test",),
    "access_request": ("created", "approved", "status_changed"),
    "code": ("issued", "revoked", "redeemed"),
    "conversation": ("started", "message", "pruned"),
    "ghost": ("accepted",),
    "writing": ("published", "unpublished"),
    "vault": ("imported",),
    "api_key": ("issued", "revoked"),
    "supplier": ("connected", "disconnected", "activated"),
    "block": ("installed", "failed"),
    "gas": ("exhausted", "refilled"),
    "instance": ("upgrade_requested",),
    "owner": ("login", "email_changed", "recovery_requested"),
    "ip_ban": ("added",),
    "booking": ("created", "cancelled", "rescheduled"),
    "application": ("committed",),
    "jobs": ("fetched",),
    "microsite.build": ("settled",),
    "page": ("promoted_live", "rolled_back", "unpublished"),
    "microsite.store": ("doc_inserted",),
}
SUBJECTS = {
    "corpus.note.changed": "<genre>://<path> of the note",
    "webhook.test": "webhook://<endpoint id>",
    "writing.published": "writing://<slug>",
    "jobs.fetched": "jobs/<owner id>",
    "application.committed": "application/<id>",
    "access_request.approved": "access_request/<id>",
    "booking.created": "booking/<id>",
    "microsite.build.settled": "microsite/<page id>",
    "page.rolled_back": "microsite/<page id>",
}


def test_the_site_declares_its_39_types_and_webhooks_may_carry_them_all():
    expected = {f"{area}.{verb}" for area, verbs in SITE.items() for verb in verbs}
    assert len(expected) == 39
    declared = {t.name: t for t in load_app(None).event_types if t.exposure == "webhook"}
    assert set(declared) == expected
    assert {t.name for t in site.event_types} == expected - {"webhook.test"}  # the engine's
    assert {name: declared[name].subject for name in SUBJECTS} == SUBJECTS


def test_every_type_of_the_site_tells_what_it_means():
    for event_type in load_app(None).event_types:
        assert event_type.description.endswith(".")
        assert event_type.subject
