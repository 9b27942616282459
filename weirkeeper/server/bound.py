"""Becomes a program that dies with its parent: `python -P -m weirkeeper.server.bound MODULE …`."""

from __future__ import annotations

import os
import signal
import sys

from shared.services.process import die_with_parent


def main(arguments: list[str]) -> None:
    """Ask the kernel for SIGTERM at the parent's death, then exec `python -P -m MODULE …`."""
    die_with_parent(signal.SIGTERM, os.getppid())
    os.execv(sys.executable, [sys.executable, "-P", "-m", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
