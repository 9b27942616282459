"""The folder of all state: where it is, and what a running server leaves in it for others.

`weirkeeper server` writes `run/server.json` (mode 0600) once its Postgres accepts connections;
every other program started later, in any shell, finds the database through it.

    HOME/run/server.json    {"database_url": "...", "pid": 123, ...}
    HOME/run/<slot>.json    address that a program with port 0 got: {"address": "127.0.0.1:8711"}
    HOME/run/<slot>/        socket of a queue process's fork server
    HOME/postgres/          the embedded server's data (may be a link, see weirkeeper/server)
    HOME/metrics/           prometheus_client's files, one a slot
    HOME/log/               what supervisord's programs wrote
"""

from __future__ import annotations

import json
from pathlib import Path


def default_home() -> Path:
    """`.weirkeeper` beside the packages when they are a checkout, else in the working folder."""
    root = Path(__file__).resolve().parents[2]
    return (root if (root / "pyproject.toml").is_file() else Path.cwd()) / ".weirkeeper"


def published_database_url(home: Path) -> str:
    """The URL that a server with this home published, or "" when there is none."""
    try:
        found = json.loads((home / "run" / "server.json").read_text())["database_url"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""
