"""Virtual environments in a moment: made without pip, their packages on paths of our choice."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

SITE_PACKAGES = Path(sysconfig.get_path("purelib"))


class Environment:
    """A virtual environment whose site-packages holds only .pth files.

    Args:
        place: an empty folder for it.
        paths: folders put on sys.path in that order, before the packages that we depend on.
    """

    def __init__(self, place: Path, paths: Sequence[Path]) -> None:
        self.prefix = place
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=60
        )
        self.site = next(place.glob("lib/python3*/site-packages"))
        for number, path in enumerate((*paths, _dependencies(place))):
            (self.site / f"{number:02d}.pth").write_text(f"{path}\n")

    def run(
        self, *arguments: str, cwd: Path, environ: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python."""
        return subprocess.run(
            [self.prefix / "bin" / "python", *arguments],
            check=False,
            cwd=cwd,
            env={"PATH": "/usr/bin:/bin", **(environ or {})},
            capture_output=True,
            text=True,
            timeout=60,
        )


def _dependencies(place: Path) -> Path:
    """What we depend on, without ourselves: links to all that is installed here but our own."""
    folder = place / "dependencies"
    folder.mkdir()
    for entry in SITE_PACKAGES.iterdir():
        if "weirkeeper" not in entry.name and entry.suffix != ".pth":
            (folder / entry.name).symlink_to(entry)
    return folder
