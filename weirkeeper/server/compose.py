"""The supervisord configuration of one server: supervisord.conf plus what only this start knows.

Reads the file that ships with the project and the operator's HOME/conf/*.conf, adds the embedded
Postgres, log files, the control socket's place and password, stop times that fit the drain, and a
program for each queue that the application declares; writes HOME/run/supervisord.conf (0600).
"""

from __future__ import annotations

import io
import math
import os
import re
import sysconfig
from collections.abc import Iterable, Iterator
from configparser import RawConfigParser
from dataclasses import dataclass
from pathlib import Path
from shlex import join

from shared.config.env import SUPERVISORD
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from weirkeeper.server.private import write_private

FLUSH = 5.0  # seconds after drain and grace: workers.drain.MARGIN + workers.drain.ENDING
MARGIN = 3  # seconds that stopwaitsecs has above drain + grace + flush
CONTROL_USER = "weirkeeper"
LOG_BYTES = "10MB"
LOG_BACKUPS = "3"
_WORKS = re.compile(r"\bworkers ([a-z][a-z0-9_]*(?: [a-z][a-z0-9_]*)*)")


@dataclass(frozen=True, slots=True)
class Control:
    """Supervisord's own socket: where, and the password it asks for."""

    socket: Path
    password: str


def shipped() -> Path:
    """supervisord.conf: beside the packages in a checkout, else where a wheel puts it.

    Raises:
        ConfigurationError: in neither place.
    """
    beside = Path(__file__).resolve().parents[2] / "supervisord.conf"
    installed = Path(sysconfig.get_path("data")) / "share" / "weirkeeper" / "supervisord.conf"
    for place in (beside, installed):
        if place.is_file():
            return place
    raise ConfigurationError.of(
        "supervisord.conf", f"{beside} or {installed}", "neither", "install weirkeeper again"
    )


def read(home: Path, file: Path | None = None) -> RawConfigParser:
    """The configuration with the operator's own over it, as supervisord would read it.

    Args:
        home: whose conf/*.conf are read after it.
        file: another supervisord.conf than the one that ships.

    Raises:
        ConfigurationError: the file cannot be read.
    """
    parser = RawConfigParser(inline_comment_prefixes=(";", "#"), strict=False)
    if file is not None and not os.access(file, os.R_OK):
        raise ConfigurationError.of("--supervisord", "a file", str(file), "correct the path")
    for part in (file or shipped(), *sorted((home / "conf").glob("*.conf"))):
        here = str(part.parent).replace("%", "%%")
        parser.read_string(part.read_text().replace("%(here)s", here), source=str(part))
    parser.remove_section("include")
    return parser


def worked(command: str) -> list[str]:
    """Queues that a program's command works: one, or several that share a process."""
    found = _WORKS.search(command)
    return found[1].split() if found else []


def programs(parser: RawConfigParser) -> list[str]:
    """Names of its programs."""
    return [s.removeprefix("program:") for s in parser.sections() if s.startswith("program:")]


def stop_seconds(settings: Settings) -> float:
    """What a queue process may need to end: drain, grace and flush."""
    return settings.drain_seconds + settings.grace_seconds + FLUSH


def complete(
    parser: RawConfigParser,
    settings: Settings,
    queues: Iterable[str],
    control: Control,
    postgres: list[str] | None,
) -> None:
    """Add to the configuration what only this start knows.

    Args:
        parser: from `read`.
        settings: home and drain.
        queues: of the whole application.
        control: supervisord's socket.
        postgres: command of the embedded server, or None.
    """
    fit(parser, settings, queues)
    if postgres is not None:
        _add_postgres(parser, postgres)
    _log_to_files(parser, settings.home / "log")
    _control(parser, control)


def fit(parser: RawConfigParser, settings: Settings, queues: Iterable[str]) -> list[str]:
    """Add a program for each queue that has none, and stop times that the drain fits in.

    Args:
        parser: from `read`.
        settings: for the drain.
        queues: of the whole application.

    Returns:
        What was added, told as what to write by hand.
    """
    return [*_add_queues(parser, queues), *_fit_stop_times(parser, settings)]


def write(parser: RawConfigParser, home: Path) -> Path:
    """Write HOME/run/supervisord.conf, which holds the control password; return it."""
    text = io.StringIO()
    parser.write(text, space_around_delimiters=False)
    file = home / "run" / "supervisord.conf"
    write_private(file, text.getvalue())
    return file


def _add_queues(parser: RawConfigParser, queues: Iterable[str]) -> Iterator[str]:
    have = programs(parser)
    shared = {q for name in have for q in worked(parser[f"program:{name}"].get("command", ""))}
    group = parser["group:queues"]
    for queue in queues:
        name = queue.replace("_", "-")
        if name not in have and queue not in shared and "index" in have:
            parser[f"program:{name}"] = dict(parser["program:index"])
            command = parser["program:index"]["command"]
            parser[f"program:{name}"]["command"] = command.replace(
                "workers index", f"workers {queue}"
            )
            group["programs"] += f",{name}"
            yield f"queue {queue} needs a [program:{name}] in HOME/conf (docs/operations.md)"


def _fit_stop_times(parser: RawConfigParser, settings: Settings) -> Iterator[str]:
    needed = math.ceil(stop_seconds(settings)) + MARGIN
    for name in parser["group:queues"]["programs"].split(","):
        section = parser[f"program:{name.strip()}"]
        if int(section["stopwaitsecs"]) < needed:
            section["stopwaitsecs"] = str(needed)
            yield f"program:{name.strip()} needs stopwaitsecs={needed}"


def _add_postgres(parser: RawConfigParser, command: list[str]) -> None:
    parser["group:postgres"] = {"programs": "postgres", "priority": "1"}
    parser["program:postgres"] = {
        "command": f"{_plain(join(command))} %(ENV_{SUPERVISORD})s",  # launch's PARENT
        "autorestart": "true",
        "startsecs": "1",
        "startretries": "10",
        "stopsignal": "INT",
        "stopwaitsecs": "60",
        "redirect_stderr": "true",
    }


def _log_to_files(parser: RawConfigParser, folder: Path) -> None:
    for name in programs(parser):
        section = parser[f"program:{name}"]
        section["stdout_logfile"] = _plain(str(folder / f"{name}.log"))
        section["stdout_logfile_maxbytes"] = LOG_BYTES
        section["stdout_logfile_backups"] = LOG_BACKUPS
    parser["supervisord"].update(
        {
            "logfile": _plain(str(folder / "supervisord.log")),
            "logfile_maxbytes": LOG_BYTES,
            "logfile_backups": LOG_BACKUPS,
            "silent": "true",
        }
    )


def _control(parser: RawConfigParser, control: Control) -> None:
    secret = {"username": CONTROL_USER, "password": control.password}
    parser["unix_http_server"].update({"file": _plain(str(control.socket)), **secret})
    parser["supervisorctl"].update({"serverurl": _plain(f"unix://{control.socket}"), **secret})


def _plain(text: str) -> str:
    """Text without expansions."""
    return text.replace("%", "%%")
