"""Request, job and lease fit into one another, or nothing starts."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from shared import engine
from shared.app import load_app
from shared.errors import ConfigurationError
from shared.webhooks.times import check_times
from weirkeeper.server.main import check


@pytest.mark.parametrize("times", [(15, 10, 20), (13, 10, 18), (15, 12, 20)])
def test_what_fits(times):
    check_times(*times)


@pytest.mark.parametrize(
    "times", [(15, 12.5, 20), (16, 10, 20), (15, 10, 19), (12, 10, 20), (0, 0, 0)]
)
def test_what_does_not(times):
    with pytest.raises(ConfigurationError, match=r"webhook\.deliver"):
        check_times(*times)


def test_neither_boot_nor_check_goes_on_and_the_numbers_are_told(monkeypatch, tmp_path, capsys):
    kinds = [
        replace(kind, timeout=16) if kind.name == "webhook.deliver" else kind
        for kind in engine.app.kinds
    ]
    monkeypatch.setattr(engine, "app", replace(engine.app, kinds=tuple(kinds)))
    with pytest.raises(ConfigurationError):
        load_app(None)
    monkeypatch.setenv("WEIRKEEPER_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["weirkeeper"])
    assert check() == 78
    told = capsys.readouterr().err
    assert "request 10 s + 3 ≤ timeout ≤ lease 20 s - 5, which is 13 to 15 s; got '16 s'" in told
