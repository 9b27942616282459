"""What a person reads once everything is ready: where things are, and what to try next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from shared.config.home import default_home
from shared.config.settings import masked

ROOT = Path(__file__).resolve().parents[2]


def greeting(
    home: Path, database_url: str, addresses: Mapping[str, str], seconds: float
) -> list[str]:
    """The lines.

    Args:
        home: WEIRKEEPER_HOME.
        database_url: shown without its password.
        addresses: host:port by role.
        seconds: from the start until ready.
    """
    listener, metrics = (addresses.get(role, "") for role in ("listener", "metrics"))
    ours = _command(home)
    psql = quote(str(home / "run" / "psql"))
    return [
        f"ready after {seconds:.1f} s",
        "",
        f"  listener   http://{listener}/v1/jobs/ID/wait?max=2",
        f"  metrics    http://{metrics}/metrics",
        f"  database   {masked(database_url)}",
        f"  logs       {home / 'log'}",
        "",
        "Try next, in a second shell:",
        f"  {ours} demo",
        f"  {ours} status",
        f"  curl -s http://{metrics}/metrics | grep ^weirkeeper_jobs",
        f'  {psql} -c "select weirkeeper.{_RECORD}"',
        f'  {psql} -c "select weirkeeper.{_ENQUEUE}"',
        "",
        "Ctrl-C drains and stops everything; the data stays.",
    ]


_RECORD = "record_event('corpus.note.changed', subject => 'til://hello')"
_ENQUEUE = "enqueue('corpus.reindex', '{}')"


def _command(home: Path) -> str:
    script = ROOT / "script" / "weirkeeper"
    command = "script/weirkeeper" if script.is_file() else "weirkeeper"
    return command if home == default_home() else f"WEIRKEEPER_HOME={quote(str(home))} {command}"
