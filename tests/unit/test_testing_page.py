"""docs/testing.md tells the truth: its application is built and its tests pass, one by one."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from weirkeeper.testing import MemoryRuntime

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "testing.md").read_text("utf-8")
APPLICATION, TESTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
NAMES = re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    shop = ModuleType("shop")
    exec(APPLICATION, shop.__dict__)
    monkeypatch.setitem(sys.modules, "shop", shop)
    names: dict[str, Any] = {}
    exec(TESTS, names)
    return names


@pytest.mark.parametrize("name", NAMES)
def test_its_tests_pass(page: dict[str, Any], name: str) -> None:
    page[name]()


def test_there_are_some() -> None:
    assert len(NAMES) == 4


def test_its_table_names_what_is_there() -> None:
    table = PAGE[PAGE.index("| call |") : PAGE.index("A handler's exception")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    calls = [call for row in rows[:-1] for call in re.findall(r"`([\w.]+)", row)]
    assert "run_due" in calls
    for call in calls:
        owner: Any = MemoryRuntime
        if call in ("MemoryRuntime", "recorder.record", "recorder.with_tx", "clock.advance"):
            continue
        assert callable(getattr(owner, call)), call
