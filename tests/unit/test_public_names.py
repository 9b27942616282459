"""The names that an application imports: there, each once, and all that it may have to catch."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import weirkeeper
from shared import errors
from shared.jobs import port, port_async
from weirkeeper import ports

SOURCE = ast.parse(Path(weirkeeper.__file__).read_text("utf-8"))
# What stops a program, not a caller: they wait for the schema, or exit with 78.
# Schemas are judged by programs; who waits beside too many is answered, not raised at.
OF_PROGRAMS = {"SchemaTooOld", "SchemaTooNew", "WaitersFull"}


def test_every_name_is_there():
    assert set(weirkeeper.__all__) == set(weirkeeper._HOMES)
    assert weirkeeper.__all__ == sorted(weirkeeper.__all__)
    for name in weirkeeper.__all__:
        assert callable(getattr(weirkeeper, name)), name


def test_type_checkers_see_the_same():
    seen = {
        alias.asname: f"{node.module}:{alias.name}"
        for node in ast.walk(SOURCE)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert seen == weirkeeper._HOMES


def test_every_error_that_a_caller_may_meet_is_public():
    ours = {
        name
        for name, found in vars(errors).items()
        if isinstance(found, type) and issubclass(found, errors.WeirkeeperError)
    }
    assert len(ours) > 8
    assert ours - OF_PROGRAMS == ours & set(weirkeeper.__all__)


def test_importing_it_imports_nothing_of_ours():
    ask = "import sys, weirkeeper; print([n for n in sys.modules if n.split('.')[0] == 'shared'])"
    done = subprocess.run(
        [sys.executable, "-P", "-c", ask], check=True, capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["Jobs", "Inspector", "Waits", "Runtime"])
def test_the_ports_for_asyncio_are_the_same(name):
    told, found = getattr(port, name), getattr(port_async, f"Async{name}")
    methods = {m for m in dir(told) if not m.startswith("_")}
    assert methods == {m for m in dir(found) if not m.startswith("_")}
    for method in methods:
        both = [inspect.signature(getattr(side, method)) for side in (told, found)]
        assert both[0] == both[1], method


def test_every_port_is_public():
    declared = {
        n
        for module in (port, port_async)
        for n, found in vars(module).items()
        if getattr(found, "_is_protocol", False) and n != "Protocol"
    }
    assert len(declared) == 8
    assert declared - set(ports.__all__) == set()
    assert all(hasattr(ports, name) for name in ports.__all__)


def test_another_name_is_refused():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = weirkeeper.Nothing
