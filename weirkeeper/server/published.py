"""What a running server leaves in HOME/run for others: the database, itself, its programs' places.

Read by shared.config.home (every program started later, in any shell) and by people
(`psql "$(cat HOME/run/database_url)"`). All of it has mode 0600: the URL holds the password.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from weirkeeper.server.private import write_private

FILES = ("server.json", "database_url")


def publish(home: Path, database_url: str, more: Mapping[str, object]) -> None:
    """Write both files, each whole or not at all.

    Args:
        home: WEIRKEEPER_HOME.
        database_url: with its password.
        more: what else server.json tells.
    """
    whole = {"database_url": database_url, "pid": os.getpid(), **more}
    write_private(home / "run" / "server.json", json.dumps(whole, indent=2) + "\n")
    write_private(home / "run" / "database_url", database_url + "\n")


def withdraw(home: Path) -> None:
    """Remove them: nothing runs any more."""
    for name in FILES:
        (home / "run" / name).unlink(missing_ok=True)
