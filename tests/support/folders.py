"""Where tests keep their databases and homes: in memory, where there is enough.

What tests prove needs no disk (a crash of the machine is not among it), and a fresh database for
each test is a copy of some hundred files: five times as quick without one. Measurements stay on disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

MEMORY = Path("/dev/shm")
ENOUGH = 4 * 2**30  # bytes: a container has 64 MiB there by default


@cache
def quick_folder() -> Path:
    """A folder that everybody may enter, with a path short enough for sockets."""
    try:
        plain = not os.statvfs(MEMORY).f_flag & (os.ST_NOEXEC | os.ST_RDONLY)
        if plain and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH:
            return MEMORY
    except OSError:
        pass
    return Path(tempfile.gettempdir())
