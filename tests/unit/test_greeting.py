"""What is offered to try next: only what the application that runs can do."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.app import App, load_app
from shared.config.home import default_home
from shared.config.spelling import command_line
from shared.events.subscriptions import Subscription
from shared.events.type import EventType
from shared.jobs.kinds import Kind
from weirkeeper.server.greeting import greeting

SHOP = App(
    include_site=False,
    event_types=(EventType("order.paid", "An order was paid.", "order/<number>"),),
    subscriptions=(Subscription("order.ship", ("order.*",), "notify", "shop:ship"),),
    kinds=(Kind("report.daily", queue="notify", handler="shop:report"),),
)


def told(app: App, home: Path | None = None) -> str:
    addresses = {"listener": "127.0.0.1:8711", "metrics": "127.0.0.1:9711"}
    return "\n".join(greeting(home or default_home(), "postgresql://h/d", addresses, 1.0, app))


def test_the_site_offers_its_demo_and_its_notes():
    text = told(load_app(None))
    assert "  script/weirkeeper demo\n" in text
    assert "record_event('corpus.note.changed', subject => 'writing://hello')" in text
    assert "enqueue('corpus.reindex', '{}')" in text


def test_another_application_offers_its_own():
    text = told(SHOP)
    assert " demo" not in text
    assert "corpus" not in text
    assert "select weirkeeper.record_event('order.paid')" in text
    assert "select weirkeeper.enqueue('report.daily', '{}')" in text


def test_an_application_without_declarations_offers_none():
    text = told(App(include_site=False))
    assert "psql" not in text
    assert "script/weirkeeper status" in text


@pytest.mark.parametrize("home", [None, default_home()])
def test_the_command_is_spelled_as_it_can_be_typed(home):
    assert command_line(home) == "script/weirkeeper"


def test_a_home_elsewhere_is_named():
    home = Path("/srv/it's here")
    assert command_line(home).startswith("WEIRKEEPER_HOME='/srv/it'")
    assert "here' script/weirkeeper demo\n" in told(load_app(None), home)
