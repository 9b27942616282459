"""Becomes supervisord, bound to the server: `python -P -m weirkeeper.server.bound PARENT MODULE …`.

Its programs get its process id handed down, so that each knows whose child it must be.
"""

from __future__ import annotations

import os
import signal
import sys

from shared.config.env import SUPERVISORD, hand_down
from shared.services.process import die_with_parent


def main(arguments: list[str]) -> None:
    """Ask the kernel for SIGTERM at the parent's death, then exec `python -P -m MODULE …`.

    Args:
        arguments: pid of who starts us (the imports above take long enough for it to die), then
            the module and its own.
    """
    die_with_parent(signal.SIGTERM, int(arguments[0]))
    hand_down(SUPERVISORD, str(os.getpid()))
    os.execv(sys.executable, [sys.executable, "-P", "-m", *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
