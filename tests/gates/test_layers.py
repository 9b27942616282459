"""Import contracts (pyproject.toml, [tool.importlinter]), run and shown red."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.gates.source import PACKAGES, ROOT

PLANTED = {
    "programs": ("relay/planted.py", "import listener.planted_too"),
    "identity": ("weirkeeper/identity.py", "import shared.errors"),
    "server": ("relay/planted.py", "import weirkeeper.server.launch"),
    "shared": ("shared/clock.py", "import shared.config.env"),
    "workers": ("workers/handlers/planted.py", "import workers.pool.planted_too"),
    "pool": ("workers/pool/planted.py", "import workers.handlers"),
    "adapters": ("workers/sideeffects/planted.py", "import shared.postgres.driver.connect"),
    "postgres": ("shared/postgres/driver/planted.py", "import shared.postgres.queues.claims"),
    "psycopg": ("shared/site/planted.py", "import psycopg"),
    "multiprocess": ("relay/planted_three.py", "import multiprocess"),
    "prometheus": ("relay/planted_four.py", "import prometheus_client"),
    "outside": ("panel/planted.py", "import httpx"),
    "sideeffects": ("workers/runner.py", "import workers.sideeffects"),
    "cryptography": ("relay/planted_five.py", "import cryptography"),
    "cycles": ("shared/events/event.py", "import shared.events.type\nimport shared.events.port"),
}
RUN = "from importlinter.cli import lint_imports_command; lint_imports_command()"
EXTRA = {
    "listener/planted_too.py": "",
    "workers/pool/planted_too.py": "",
    "shared/events/port.py": "import shared.events.event",
}


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the contracts over the packages of a folder."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(folder)!r})\n{RUN}",
            "--no-cache",
            "--no-logo",
            *arguments,
        ],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_every_contract_is_kept():
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The packages, and their contracts, where they may be spoilt."""
    folder = tmp_path_factory.mktemp("copy")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_planted_imports_are_seen(copy):
    spoilt = {**EXTRA, **dict(PLANTED.values())}
    for path, text in spoilt.items():
        file = copy / path
        old = file.read_text("utf-8") if file.exists() else ""
        file.write_text(old + "\n" + text + "\n", "utf-8")
    for path, text in PLANTED.values():  # one file may be planted into twice
        file = copy / path
        if text not in file.read_text("utf-8"):
            file.write_text(file.read_text("utf-8") + text + "\n", "utf-8")
    done = lint(copy)
    assert done.returncode == 1, done.stdout + done.stderr
    names = contracts()
    kept = [key for key in names if f"{names[key]} BROKEN" not in done.stdout]
    assert kept == [], done.stdout


def contracts() -> dict[str, str]:
    """Name of every contract by its id."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return {c["id"]: c["name"] for c in settings["tool"]["importlinter"]["contracts"]}


def test_every_contract_has_a_planted_violation():
    assert set(contracts()) == set(PLANTED)
