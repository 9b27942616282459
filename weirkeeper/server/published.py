"""What a running server leaves in HOME/run for others: the database, itself, its programs' places.

Read by shared.config.home (every program started later, in any shell) and by people
(`HOME/run/psql` opens a session). Only we can read it: the URL holds the password.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from weirkeeper.server.private import write_private

FILES = ("server.json", "database_url", "psql")
PSQL = """#!/bin/sh
exec {psql} "$(cat {url_file})" "$@"
"""


def publish(home: Path, database_url: str, psql: str, more: Mapping[str, object]) -> None:
    """Write the files, each whole or not at all.

    Args:
        home: WEIRKEEPER_HOME.
        database_url: with its password.
        psql: the program.
        more: what else server.json tells.
    """
    whole = {"database_url": database_url, "pid": os.getpid(), **more}
    write_private(home / "run" / "server.json", json.dumps(whole, indent=2) + "\n")
    url_file, script = home / "run" / "database_url", home / "run" / "psql"
    write_private(url_file, database_url + "\n")
    write_private(script, PSQL.format(psql=quote(psql), url_file=quote(str(url_file))))
    script.chmod(0o700)


def withdraw(home: Path) -> None:
    """Remove them: nothing runs any more."""
    for name in FILES:
        (home / "run" / name).unlink(missing_ok=True)
