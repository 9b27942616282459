"""What programs load: memory that is there once in each of them, whatever it does."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module

import pytest

from shared.absent import absent

# Costs 1 to 5 MiB each. dill is for what an application hands to processes of its own, the command
# line of httpx for people, and each is loaded by a library that can do without it.
HEAVY = {"dill", "httpx", "cryptography", "prometheus_client", "http.server", "rich", "smtplib"}
PROGRAMS = {
    "workers.main": set(),
    "relay.main": set(),
    "listener.main": set(),
    "metrics.main": {"prometheus_client", "http.server"},
}
CHILD = """
import json, sys
from shared.config import settings
from workers import child_main, preload
from shared.services.coroutines import Coroutines
from workers.pool.child import Interruption
from workers.pool.progress import Progress

def read(*_):
    raise AssertionError("a child reads what the fork server has read")

settings.Settings.load = read
before = set(sys.modules)
child_main._prepare(Coroutines(), Interruption(Progress.create()))
print(json.dumps([sorted(sys.modules), sorted(set(sys.modules) - before)]))
"""


def run(code: str, **environ: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", "-c", code],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        env=environ,
    ).stdout


@pytest.mark.parametrize(("program", "needed"), PROGRAMS.items())
def test_a_program_loads_no_more_than_it_needs(program, needed):
    loaded = set(json.loads(run(f"import json, sys, {program}; print(json.dumps([*sys.modules]))")))
    assert program in loaded
    assert loaded & HEAVY == needed


@pytest.mark.parametrize("queue", ["index", "notify", "webhook", "maintenance", "fetch"])
def test_a_child_loads_and_reads_nothing_that_its_fork_server_did_not(queue, tmp_path):
    loaded, later = json.loads(
        run(
            CHILD,
            WEIRKEEPER_QUEUE=queue,
            WEIRKEEPER_HOME=str(tmp_path),
            DATABASE_URL="postgresql://nowhere/x",
        )
    )
    assert not later
    assert not set(loaded) & {"rich", "click", "prometheus_client"}


def test_what_is_absent_is_there_again_afterwards(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with absent("colorsys"), pytest.raises(ImportError):
        import_module("colorsys")
    found = import_module("colorsys")
    with absent("colorsys"):  # too late
        assert import_module("colorsys") is found
    assert sys.modules["colorsys"] is found
