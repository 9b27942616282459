"""Event types and globs: what a declaration means when it says little."""

from __future__ import annotations

import pytest

from shared.app import load_app
from shared.events.globs import matches
from shared.events.type import EventType


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


def test_every_type_of_the_site_tells_what_it_means():
    for event_type in load_app(None).event_types:
        assert event_type.description.endswith(".")
        assert event_type.subject
