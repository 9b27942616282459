"""Each comparison runs to its last line, with ours alone and next to nothing to do."""

from __future__ import annotations

import importlib
import json

import pytest

SMALL = {
    "drain": ("--jobs", "300"),
    "enqueue": ("--singles", "20", "--bulk", "100"),
    "growth": ("--few", "2000", "--many", "3000"),
    "held_snapshot": ("--jobs", "300", "--singles", "3"),
    "latency": ("--jobs", "3"),
    "limits": (),
    "sleeps": ("--jobs", "300", "--seconds", "0.2"),
    "sleep_lock": ("--seconds", "1", "--pickups", "3"),
    "wal": ("--jobs", "300"),
}


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_comparison_reports(name, capsys):
    alone = () if name in ("growth", "limits", "sleep_lock", "sleeps") else ("--alone",)
    code = importlib.import_module(f"bench.{name}").main(["--rounds", "1", *alone, *SMALL[name]])
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["name"] == name
    assert last["rival"] is None
    assert last["ours"] > 0
    assert code == (1 if last["ok"] is False else 0)
