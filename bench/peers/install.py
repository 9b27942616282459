"""Getting the rivals: exact versions, into a folder of the cache, once; nothing in ours changes.

Each has a list of what it needs (package.json, requirements.txt); the folder's name bears the
list's hash, so another version is another folder. A rival that cannot be had is no error of ours:
`Unavailable` says why in one line, and the measurement goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PATIENCE = 300.0  # seconds that a package manager may take


class Unavailable(Exception):
    """A rival cannot be had here."""


def graphile() -> list[str]:
    """Install Graphile Worker and its Node; return the command of its driver."""
    folder = HERE / "graphile"

    def install(into: Path) -> None:
        for name in ("package.json", "driver.mjs"):
            shutil.copy(folder / name, into)
        _run(["npm", "install", "--no-audit", "--no-fund", "--no-save"], into)

    home = _kept("graphile", [folder / "package.json", folder / "driver.mjs"], install)
    return [_program(home / "node_modules" / ".bin" / "node"), str(home / "driver.mjs")]


def pgqueuer() -> list[str]:
    """Install PgQueuer into a virtual environment of its own; return the command of its driver."""
    wanted = HERE / "pgqueuer" / "requirements.txt"

    def install(into: Path) -> None:
        _run([sys.executable, "-m", "venv", "--without-pip", "."], into)
        pip = [_base_python(), "-m", "pip", "--quiet", "--python", "bin/python"]
        _run([*pip, "install", "--requirement", str(wanted)], into)

    home = _kept("pgqueuer", [wanted], install)
    return [_program(home / "bin" / "python"), str(HERE / "pgqueuer" / "driver.py")]


def cache() -> Path:
    """Where rivals are kept: under WEIRKEEPER_HOME when it is set, else in the user's cache."""
    home = os.environ.get("WEIRKEEPER_HOME")
    if home:
        return Path(home) / "bench"
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(base) / "weirkeeper" / "bench"


def _kept(name: str, lists: Sequence[Path], install: Callable[[Path], None]) -> Path:
    """The folder of a rival; when it is not there, it is made, and put in place whole."""
    version = hashlib.sha256(b"".join(path.read_bytes() for path in lists)).hexdigest()[:12]
    home = cache() / f"{name}-{version}"
    if home.exists():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{name}-", dir=home.parent) as made:
        install(Path(made))
        Path(made).rename(home)
        Path(made).mkdir()  # for the context's end
    return home


def _run(command: list[str], folder: Path) -> None:
    try:
        ran = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]}: {error}") from error
    if ran.returncode:
        said = (ran.stderr or ran.stdout).strip().splitlines() or ["it says nothing"]
        raise Unavailable(f"{' '.join(command[:3])} failed: {said[-1]}")


def _program(path: Path) -> str:
    if not path.exists():
        raise Unavailable(f"{path} was not installed; remove {path.parents[1]} to try again")
    return str(path)


def _base_python() -> str:
    """The interpreter that our environment was made with: it has a pip, ours need not."""
    return getattr(sys, "_base_executable", "") or sys.executable
