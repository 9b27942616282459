"""One server per home folder: a lock that the kernel gives back however its holder ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.errors import ConfigurationError


@contextmanager
def only_server(home: Path) -> Iterator[None]:
    """Hold the home folder while the body runs.

    Raises:
        ConfigurationError: another server holds it.
    """
    file = os.open(home / "run" / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = os.pread(file, 20, 0).decode().strip()
            holder = f"process {pid}" if pid else "one that is just starting"
            raise ConfigurationError.of(
                "WEIRKEEPER_HOME",
                "a folder that no other server uses",
                f"{home}, used by {holder}",
                "stop that one, or set WEIRKEEPER_HOME to another folder",
            ) from None
        ours = str(os.getpid()).encode()
        os.pwrite(file, ours, 0)
        os.ftruncate(file, len(ours))  # of a longer one that was killed
        try:
            yield
        finally:
            os.ftruncate(file, 0)  # so that nobody is told of one that is gone
    finally:
        os.close(file)
