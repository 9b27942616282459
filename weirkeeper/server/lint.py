"""What supervisord.conf must say; refused at boot rather than found out during a stop.

The numbers are those of docs/operations.md; each was tried against a real supervisord.
"""

from __future__ import annotations

from collections.abc import Iterable
from configparser import RawConfigParser

from shared.config.settings import Settings
from shared.errors import ConfigurationError
from weirkeeper.server.compose import programs, stop_seconds
from weirkeeper.server.slots import numprocs, processes

STOP_ORDER = ("relay", "queues", "listener", "metrics")
FIXED = {
    "autorestart": "unexpected",
    "exitcodes": "0,78",
    "startretries": "10",
    "stopsignal": "TERM",
    "stopasgroup": "false",
    "killasgroup": "true",
    "redirect_stderr": "true",
}


def lint(parser: RawConfigParser, settings: Settings, queues: Iterable[str]) -> None:
    """Refuse what would lose work, or hang, at a stop or restart.

    Args:
        parser: the configuration as it will run.
        settings: for the drain.
        queues: of the whole application; each needs a program.

    Raises:
        ConfigurationError: the first mistake.
    """
    if parser.has_section("inet_http_server"):
        raise _mistake("inet_http_server", "no such section", "one", "use the unix socket")
    _check_socket(parser)
    _check_order(parser)
    ours = _members(parser, STOP_ORDER)
    for name in ours:
        _check_program(parser, name)
    for name in _members(parser, ("queues",)):
        _check_stop_time(parser, name, settings)
    shared = processes(parser)  # by queue: one program may work several
    for queue in queues:
        if queue.replace("_", "-") not in ours and not shared[queue]:
            raise _mistake(
                f"queue {queue}",
                "a program that works it",
                f"programs {', '.join(sorted(ours))}",
                f"add [program:{queue.replace('_', '-')}] in HOME/conf, in [group:queues] (plain "
                "supervisord needs it; `weirkeeper server` adds it by itself)",
            )


def _check_socket(parser: RawConfigParser) -> None:
    """Whoever can write to the control socket can run anything as us."""
    mode = parser.get("unix_http_server", "chmod", fallback="0700")
    if int(mode, 8) & 0o077:
        raise _mistake("unix_http_server chmod", "0700", mode, "restore it")


def _check_order(parser: RawConfigParser) -> None:
    numbers = []
    for group in STOP_ORDER:
        if not parser.has_option(f"group:{group}", "priority"):
            raise _mistake(f"group:{group}", "a section with a priority", "none", "restore it")
        numbers.append(parser.getint(f"group:{group}", "priority"))
    if numbers != sorted(set(numbers), reverse=True):
        raise _mistake(
            "group priorities", " above ".join(STOP_ORDER), numbers, "restore the stop order"
        )


def _check_program(parser: RawConfigParser, name: str) -> None:
    section = parser[f"program:{name}"]
    if "_" in name:
        raise _mistake(f"program:{name}", "a name with - for _", name, "rename it")
    for option, expected in FIXED.items():
        if section.get(option) != expected:
            got = section.get(option)
            raise _mistake(f"program:{name} {option}", expected, got, "restore it")
    if numprocs(parser, name) > 1 and "--slot" not in section.get("command", ""):
        raise _mistake(
            f"program:{name} numprocs",
            "a slot for each process",
            section.get("numprocs"),
            "add `--slot NAME-%(process_num)s` to its command: two processes with one slot refuse",
        )


def _check_stop_time(parser: RawConfigParser, name: str, settings: Settings) -> None:
    needed = stop_seconds(settings)
    given = parser.getint(f"program:{name}", "stopwaitsecs")
    if given <= needed:
        raise _mistake(
            f"program:{name} stopwaitsecs",
            f"more than drain + grace + flush = {needed:g} s",
            given,
            "raise it, or lower WEIRKEEPER_DRAIN_SECONDS",
        )


def _members(parser: RawConfigParser, groups: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for group in groups:
        found |= {n.strip() for n in parser[f"group:{group}"]["programs"].split(",")}
    missing = found - set(programs(parser))
    if missing:
        raise _mistake("groups", "members that are programs", sorted(missing), "correct the names")
    return found


def _mistake(what: str, expected: str, got: object, hint: str) -> ConfigurationError:
    return ConfigurationError.of(f"supervisord.conf, {what}", expected, got, hint)
