"""What a server with its own Postgres sets by itself, and that a word of its person beats it."""

from __future__ import annotations

import json

import pytest

from shared.config.env import SUPERVISORD
from shared.config.loopback import RECEIVER
from shared.config.settings import Settings
from shared.errors import InvalidArguments
from shared.webhooks.rules import rules
from weirkeeper.server.own import LOCAL, own_settings


def test_a_secret_is_made_once_and_this_machine_opened_on_demand_alone(tmp_path):
    closed, opened, again = (own_settings(tmp_path, receiver=r) for r in (False, True, True))
    assert closed.keys() == {"WEIRKEEPER_SECRET"}
    assert opened == again == closed | LOCAL


@pytest.mark.parametrize("name", ["DENY", "PORTS", "HTTP", "ALLOW"])
def test_a_word_of_its_person_is_all_that_holds(monkeypatch, tmp_path, name):
    said = {"DENY": "10.0.0.0/8", "PORTS": "443", "HTTP": "no", "ALLOW": "192.168.1.0/24"}
    monkeypatch.setenv(f"WEIRKEEPER_OUTBOUND_{name}", said[name])
    monkeypatch.setenv("WEIRKEEPER_SECRET", "of our own " * 4)
    assert own_settings(tmp_path, receiver=True) == {}
    assert list(tmp_path.iterdir()) == []


def test_a_shell_finds_what_the_running_server_set(monkeypatch, tmp_path):
    (tmp_path / "run").mkdir()
    told = {"database_url": "postgresql://h/d", "settings": own_settings(tmp_path, receiver=True)}
    (tmp_path / "run" / "server.json").write_text(json.dumps(told))
    shell = {"WEIRKEEPER_HOME": str(tmp_path)}
    found = Settings.load(shell)
    assert found.sealing_keys == (told["settings"]["WEIRKEEPER_SECRET"],)
    check = rules(found).check_url
    check(f"http://{RECEIVER}:8712/")
    for refused in ("http://127.0.0.1/", "https://127.0.0.1/", "http://93.184.216.34/"):
        with pytest.raises(InvalidArguments):
            check(refused)
    other = Settings.load({**shell, "WEIRKEEPER_OUTBOUND_HTTP": "no"})
    with pytest.raises(InvalidArguments, match="scheme"):
        rules(other).check_url(f"http://{RECEIVER}:8712/")
    assert Settings.load({**shell, "DATABASE_URL": "postgresql://h/e"}).sealing_keys == ()
    monkeypatch.setenv(SUPERVISORD, "1")
    assert Settings.load(shell).sealing_keys == (), "a child gets what its queue needs, and no more"
