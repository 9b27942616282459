"""The programs that a command becomes: `weirkeeper worker index` is `python -P -m workers index`.

Replaces the process instead of importing the program: children of the queue process run the main
module again, and a console script would be that main module. The identity check runs first, so
that another distribution's `workers` never does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn


def become(module: str, arguments: Sequence[str]) -> NoReturn:
    """Replace this process by a program of ours.

    Args:
        module: workers, relay, listener or metrics.
        arguments: given on as they are.
    """
    sys.stdout.flush()
    os.execv(sys.executable, command(module, arguments))
    raise AssertionError("execv returned")


def command(module: str, arguments: Sequence[str]) -> list[str]:
    """The command line that the process becomes."""
    return [sys.executable, "-P", "-m", "weirkeeper.identity", module, *arguments]
