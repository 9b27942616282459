"""Are we ourselves? Refuses to start when one of our plain names is somebody else's.

The top-level names `workers relay listener shared metrics` collide with an application's own
easily. Each program's `__main__` calls `check` before it imports anything else of ours; under
supervisord a program starts as `python -P -m weirkeeper.identity --parent PID workers index`, which
checks before it becomes `python -P -m workers index`, so that a foreign `workers` never runs. It
also ties the program's life to its supervisord's, before the long imports: one that dies while its
programs start leaves none behind.

Standard library only; looks the names up without importing them.
"""

from __future__ import annotations

import base64
import csv
import ctypes
import hashlib
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

NAMES = ("weirkeeper", "shared", "relay", "workers", "listener", "metrics", "panel")
ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = 78  # exit code: starting again will not help
PARENT = "--parent"
_PR_SET_PDEATHSIG = 1  # of prctl; what it sets survives exec
REMEDY = (
    "run Weirkeeper in a virtual environment of its own, with python -P, and without that place in "
    "PYTHONPATH or a .pth file"
)


def check() -> None:
    """Return when all our names are ours; else say whose they are and exit with 78."""
    intruder = find_intruder()
    if intruder:
        sys.stderr.write(f"weirkeeper: {intruder}\n")
        raise SystemExit(CONFIGURATION)


def find_intruder(root: Path = ROOT) -> str:
    """Name the first package that is not ours, or "".

    Args:
        root: the one place that all of them must come from.
    """
    recorded = _recorded(root)
    for name in NAMES:
        expected = root / name / "__init__.py"
        found = _origin(name)
        if found is None or found.resolve() != expected.resolve():
            got = found or "nothing that can be imported"
            return f"package {name}: expected {expected}; got {got}; {REMEDY}"
        digest = recorded.get(f"{name}/__init__.py")
        if digest is not None and digest != _digest(expected):
            return (
                f"package {name}: expected the files that weirkeeper installed in {root}; got "
                f"those of another distribution over them; {REMEDY}, and install weirkeeper again"
            )
    return ""


def _origin(name: str) -> Path | None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _recorded(root: Path) -> dict[str, str]:
    """Checksums of our installed files; none in a checkout, which has no RECORD."""
    for record in root.glob("weirkeeper-*.dist-info/RECORD"):
        with record.open(newline="", encoding="utf-8") as lines:
            return {row[0]: row[1].removeprefix("sha256=") for row in csv.reader(lines) if row[1]}
    return {}


def _digest(file: Path) -> str:
    whole = hashlib.sha256(file.read_bytes()).digest()
    return base64.urlsafe_b64encode(whole).rstrip(b"=").decode()


def main(arguments: list[str]) -> None:
    """Check, then become the program that the arguments name.

    Args:
        arguments: maybe `--parent PID`, who is to have started us; then the module and its own.
    """
    parent, supervised = os.getppid(), arguments[:1] == [PARENT]
    if supervised:
        parent, arguments = int(arguments[1]), arguments[2:]
    _end_with(parent, supervised=supervised)
    check()
    if not arguments:
        return
    os.execv(sys.executable, [sys.executable, "-P", "-m", *arguments])


def _end_with(parent: int, *, supervised: bool) -> None:
    """Get SIGTERM when the parent ends, or now when it has ended already."""
    if not sys.platform.startswith("linux"):
        return  # the program itself says what it needs
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent or (supervised and not _is_supervisord(parent)):
        os.kill(os.getpid(), signal.SIGTERM)


def _is_supervisord(pid: int) -> bool:
    """Else it adopted us: the shell that told its own parent had lost its supervisord before."""
    try:
        return b"supervisord" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    main(sys.argv[1:])
