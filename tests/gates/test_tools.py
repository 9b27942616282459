"""mypy --strict and ruff have nothing to say, and would have something to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.gates.source import ROOT

BROKEN = "def f(x):\n    return x + y"


def tool(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a tool of this environment."""
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "arguments",
    [
        ("mypy",),
        ("mypy", "bench"),
        ("ruff", "check", "."),
        ("ruff", "format", "--check", "."),
    ],
    ids=" ".join,
)
def test_nothing_to_say(arguments):
    done = tool(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "arguments", [("mypy",), ("ruff", "check"), ("ruff", "format", "--check")], ids=" ".join
)
def test_planted_faults_are_seen(arguments, tmp_path):
    planted = tmp_path / "planted.py"
    planted.write_text(BROKEN)
    configuration = ["--config-file" if arguments[0] == "mypy" else "--config"]
    done = tool(*arguments, *configuration, str(ROOT / "pyproject.toml"), str(planted))
    assert done.returncode == 1, done.stdout + done.stderr
