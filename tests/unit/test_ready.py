"""Waiting for a start: what a person reads on a machine that takes long."""

from __future__ import annotations

from shared.services.stop import StopSignal
from tests.support.cluster import free_port
from weirkeeper.server import ready
from weirkeeper.server.ready import Readiness, expected_roles


class Starting:
    """A supervisord whose programs all start, none refused."""

    def running(self):
        return True

    def states(self):
        return []

    def refusals(self):
        return []


def test_what_is_missing_is_told_less_and_less_often(tmp_path, monkeypatch):
    monkeypatch.setattr(ready, "REMIND", 0.05)
    monkeypatch.setattr(ready, "LOOK", 0.005)
    roles = expected_roles(["index"])
    watched = Readiness("postgresql://nobody", roles, Starting(), tmp_path)
    looks, told, stop = [], [], StopSignal()

    def look():
        looks.append(1)
        if len(looks) > 200:
            stop.request()
        return {("relay", None): "", ("queue", "index"): ""}

    monkeypatch.setattr(watched, "_ready_roles", look)
    assert watched.wait(stop, told.append) is None
    # At least a second: 0.05, 0.1, 0.3, 0.7, …; every 0.05 s it would be twenty.
    assert 2 <= len(told) <= 7
    assert set(told) == {
        "2 of 4 processes are ready; waiting for listener, metrics (a busy machine takes longer)"
    }


def test_a_database_that_does_not_answer_is_told_with_its_reason(tmp_path, monkeypatch):
    """A full disk, say: no program is late by itself then."""
    monkeypatch.setattr(ready, "REMIND", 0.01)
    monkeypatch.setattr(ready, "LOOK", 0.005)
    url = f"postgresql://127.0.0.1:{free_port()}/x"
    watched = Readiness(url, expected_roles(["index"]), Starting(), tmp_path)
    told, stop = [], StopSignal()

    def tell(line):
        told.append(line)
        stop.request()

    assert watched.wait(stop, tell) is None
    [line] = told
    assert line.startswith("waiting for the database: ")
    assert "Connection refused" in line
    assert str(tmp_path) in line
    assert "\n" not in line
