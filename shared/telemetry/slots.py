"""The folder of metrics files, and the right to write one slot's: one live process a slot.

Stands before `series`, which writes the files, and beside the metrics program, which reads them.
A slot is a place for a process ("index", "relay"), not a life of one: files are named after it, so
that counters survive restarts and the folder stays bounded however often processes die.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
from pathlib import Path

from shared.errors import ConfigurationError

NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_FLOCK = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid
_WHOLE_FILE = (os.SEEK_SET, 0, 0, 0)


def metrics_folder(home: Path) -> Path:
    """Make HOME/metrics if it is missing, mode 0700, and refuse one that is not ours alone.

    HOME, if ours, gets that mode as well: a supervisord that somebody starts makes HOME/log/*.log
    for all to read, and logs tell of jobs.

    Args:
        home: the folder of all state.

    Raises:
        ConfigurationError: it is a link, no folder, or another user's.
    """
    folder = home / "metrics"
    home.mkdir(parents=True, exist_ok=True)
    if home.stat().st_uid == os.geteuid():
        home.chmod(0o700)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or found.st_uid != os.geteuid():
        raise ConfigurationError.of(
            "WEIRKEEPER_HOME",
            f"{folder} to be a folder of user {os.geteuid()}, not a link",
            f"mode {found.st_mode:o} of user {found.st_uid}",
            "remove it or set another WEIRKEEPER_HOME",
        )
    folder.chmod(0o700)
    return folder


class SlotLock:
    """Held for a process's life: nobody else may write this slot's files.

    A lock of the open file, not of the process: it ends with the process whatever kills it, no
    child inherits it, and the reader can look at it without taking it.

    Args:
        folder: HOME/metrics.
        slot: name of the slot.

    Raises:
        ConfigurationError: a bad name, or a live process has it.
    """

    def __init__(self, folder: Path, slot: str) -> None:
        if not NAME.fullmatch(slot):
            raise ConfigurationError.of(
                "--slot", "a match of [a-z][a-z0-9-]{0,62}", slot, "name it like index-2"
            )
        self._fd = os.open(_path(folder, slot), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _fcntl(self._fd, fcntl.F_OFD_SETLK)
        except OSError as error:
            os.close(self._fd)
            raise ConfigurationError.of(
                "--slot",
                f"a slot that no live process of {folder.parent} has",
                slot,
                "stop that process, or start this one with another --slot",
            ) from error

    def release(self) -> None:
        """Let another process have the slot; harmless when repeated."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def is_live(folder: Path, slot: str) -> bool:
    """Whether a process holds the slot now; looks without disturbing one that is starting."""
    try:
        fd = os.open(_path(folder, slot), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _fcntl(fd, fcntl.F_OFD_GETLK) != fcntl.F_UNLCK
    finally:
        os.close(fd)


def _path(folder: Path, slot: str) -> Path:
    return folder / f"{slot}.lock"


def _fcntl(fd: int, command: int) -> int:
    """Apply a lock command to the whole file; return the lock type that comes back."""
    wanted = struct.pack(_FLOCK, fcntl.F_WRLCK, *_WHOLE_FILE)
    return int(struct.unpack(_FLOCK, fcntl.fcntl(fd, command, wanted))[0])
