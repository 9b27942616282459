"""The folder of all state: where it is, and what a running server leaves in it for others.

`weirkeeper server` writes `run/server.json` (mode 0600) once its Postgres accepts connections;
every other program started later, in any shell, finds the database through it.

    HOME/run/server.json    {"database_url": "...", "pid": 123, "queues": ["index", ...], ...}
    HOME/webhook_secret     what it seals webhook secrets with, if WEIRKEEPER_SECRET is not set
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
    found = _published(home, "database_url")
    return found if isinstance(found, str) else ""


def published_queues(home: Path) -> list[str]:
    """The queues that a server with this home works, or none when no server runs."""
    found = _published(home, "queues")
    return [str(name) for name in found] if isinstance(found, list) else []


def published_settings(home: Path) -> dict[str, str]:
    """What a server with this home set by itself, or nothing when no server runs."""
    found = _published(home, "settings")
    if not isinstance(found, dict):
        return {}
    return {str(name): value for name, value in found.items() if isinstance(value, str)}


def _published(home: Path, name: str) -> object:
    try:
        return json.loads((home / "run" / "server.json").read_text())[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
