"""Failpoints: every call names a place that is listed, every place is called once, nobody else sets them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from shared.config import env
from shared.errors import ConfigurationError
from shared.failpoints import NAMES, parsed
from tests.gates.source import Source, complaints, everything, planted, product, red

FP = "shared.failpoints.fp"


def places(source: Source) -> Iterator[tuple[int, str | None]]:
    """(line, name) of each failpoint; None = it is not written out."""
    for call, name in source.calls():
        if name == FP:
            first = call.args[0] if call.args else None
            yield call.lineno, first.value if isinstance(first, ast.Constant) else None


def unknown(source: Source) -> Iterator[str]:
    """Complain about failpoints that are not listed."""
    for line, name in places(source):
        if name not in NAMES:
            yield f"{source.path}:{line}: {name}: expected one of NAMES in shared/failpoints.py"


def armed(source: Source) -> Iterator[str]:
    """Complain about whoever names the variable, but for its reader and the failpoints themselves."""
    if source.path in ("shared/config/env.py", "shared/failpoints.py"):
        return
    for node in source.walk(ast.Constant):
        if isinstance(node.value, str) and "TEST_FAILPOINTS" in node.value:
            yield f"{source.path}:{node.lineno}: failpoints are for tests"


def test_every_failpoint_is_known_and_stands_once():
    assert complaints(unknown, everything()) == []
    used = Counter(name for source in product() for _, name in places(source))
    assert used == Counter(NAMES)


def test_nothing_that_is_shipped_sets_them():
    assert complaints(armed, product()) == []


def test_planted_faults_are_seen():
    there = "from shared.failpoints import fp\nfp('{}')"
    assert red(unknown, there.format("nowhere"))
    assert red(unknown, "from shared import failpoints\nname = 'relay_passed'\nfailpoints.fp(name)")
    assert not red(unknown, there.format(NAMES[0]))
    assert red(armed, "env = {'TEST_FAILPOINTS': 'x'}")
    assert not list(armed(planted("x = 'TEST_FAILPOINTS'", "shared/config/env.py")))


def test_without_the_variable_nothing_is_planned(monkeypatch):
    monkeypatch.delenv("TEST_FAILPOINTS", raising=False)
    assert parsed(env.failpoints()) == {}


@pytest.mark.parametrize(
    "text",
    ["nowhere=kill", "relay_passed", "relay_passed=", "relay_passed=die", "relay_passed@x=kill",
     "relay_passed=pause:relative", "relay_passed=kill;nowhere=kill"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(text):
    with pytest.raises(ConfigurationError, match="TEST_FAILPOINTS: expected"):
        parsed(text)


def test_a_plan_is_read():
    text = "relay_passed=pause:/tmp/x;relay_announced@3=kill;"
    assert parsed(text) == {"relay_passed": (0, "pause:/tmp/x"), "relay_announced": (3, "kill")}
