"""What programs load: memory that is there once in each of them, whatever it does."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module, metadata

import psycopg
import pytest

from shared import release
from shared.absent import absent
from tests.support.receivers import Authority, Receiver, Recording

# 1 to 5 MiB each. What one of our libraries would load for a feature that nobody here uses: dill is
# for what an application hands to processes of its own, rich for people at a command line, the mail
# parser and the zip reader for a version's number.
HEAVY = {
    "cryptography",
    "dill",
    "email.message",
    "http.server",
    "httpx",
    "importlib.metadata",
    "prometheus_client",
    "rich",
    "smtplib",
    "zipfile",
}
PROGRAMS = {
    "workers.main": set(),
    "relay.main": set(),
    "listener.main": {"email.message"},
    "metrics.main": {"prometheus_client", "http.server", "email.message"},
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

# A delivery's first request, in a child: what it needs is there.
REQUEST = """
from shared.config import settings
from workers import child_main, preload
import ssl, sys
from workers.handlers.webhook import request
from workers.sideeffects.http.exchange import Outgoing

def again(*_):
    raise AssertionError("a child builds what its fork server has built")

settings.Settings.load = ssl.create_default_context = request.Sealer.__init__ = again
before = set(sys.modules)
client, limits = request.caller()
request.discards(), request._version()
found = client.send(Outgoing("POST", sys.argv[1], body=b"{}"), limits=limits)
print(found.status, sorted(set(sys.modules) - before))
"""


def run(code: str, *arguments: str, **environ: str) -> str:
    return subprocess.run(
        [sys.executable, "-P", "-c", code, *arguments],
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
    assert ("cryptography" in loaded) == (queue in ("webhook", "maintenance"))


def test_a_childs_first_request_loads_and_builds_nothing_that_its_fork_server_did_not(tmp_path):
    authority = Authority()
    with Receiver(Recording(), authority.server("127.0.0.1")) as receiver:
        told = run(
            REQUEST,
            f"https://127.0.0.1:{receiver.port}/",
            WEIRKEEPER_QUEUE="webhook",
            WEIRKEEPER_HOME=str(tmp_path),
            DATABASE_URL="postgresql://nowhere/x",
            WEIRKEEPER_SECRET="s" * 40,
            WEIRKEEPER_OUTBOUND_ALLOW="127.0.0.1",
            WEIRKEEPER_OUTBOUND_CA=authority.write(str(tmp_path / "ca")),
        )
    assert told == "200 []\n"


def test_a_version_is_the_one_that_importlib_tells():
    for name in ("psycopg", "psycopg-binary", "weirkeeper", "msgspec"):
        assert release.version(name) == metadata.version(name)
    assert psycopg.__version__ == metadata.version("psycopg")
    with pytest.raises(metadata.PackageNotFoundError):
        release.version("nobody-installs-this")


def test_what_cheap_versions_do_not_know_importlib_is_asked(monkeypatch):
    monkeypatch.delitem(sys.modules, "importlib.metadata")
    with release.cheap_versions():
        lean = import_module("importlib.metadata")
        assert lean.version("psycopg") == metadata.version("psycopg")
        assert "importlib.metadata" in sys.modules
        assert lean.__spec__ is None
        assert lean.PackageNotFoundError.__mro__[1] is ModuleNotFoundError
    assert import_module("importlib.metadata").__spec__ is not None


def test_what_is_absent_is_there_again_afterwards(monkeypatch):
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    with absent("colorsys"), pytest.raises(ImportError):
        import_module("colorsys")
    found = import_module("colorsys")
    with absent("colorsys"):  # too late
        assert import_module("colorsys") is found
    assert sys.modules["colorsys"] is found
