"""The command line: a table of commands, each imported only when it is called.

Stands before `panel.cli.commands` (one command a file) and `panel.cli.programs` (the four programs
that a command becomes). `weirkeeper --help` imports no command, so that it answers at once.
Must never hold what a command does.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import argparse
    from types import ModuleType

INTERRUPTED = 130  # as a shell says it of Ctrl-C
USAGE = 2  # what argparse exits with, too


class Command(NamedTuple):
    """One row of the table. `program`: the module that the command becomes, or ""."""

    name: str
    summary: str
    program: str = ""


TABLE: dict[str, tuple[Command, ...]] = {
    "Start here": (
        Command("server", "start Postgres, schema and every process in the foreground"),
        Command("status", "show which processes run, and whether all are ready"),
        Command("health", "one process: do its loops turn, is it ready (for probes)"),
        Command("demo", "import notes, search them, and show what happened on the way"),
    ),
    "Look and work": (
        Command("jobs", "list, show, explain, retry and cancel jobs; how each kind stands"),
        Command("events", "list, show, requeue and replay events; try a subscriber's globs"),
        Command("pause", "start no more jobs of a queue or kind"),
        Command("resume", "start jobs of a queue or kind again"),
        Command("corpus", "create, import and search notes"),
        Command("webhooks", "endpoints, what was sent to them, why not; tools for receivers"),
        Command("verify", "look for rows that break the engine's promises; --repair mends"),
    ),
    "Before and after a deploy": (
        Command("check", "check settings, application, budget and supervisord.conf"),
        Command("migrate", "bring the database's schema and declarations up to date"),
        Command("drain", "stop relay and queues in order, or have an older release rest"),
        Command("drains", "show how the last stops went, and what they interrupted"),
        Command("version", "show versions of Weirkeeper, Python, driver and schema"),
    ),
    "Single programs (the server starts them all)": (
        Command("worker", "QUEUE: run the jobs of one queue", "workers"),
        Command("relay", "turn recorded events into jobs", "relay"),
        Command("listener", "let callers wait for a result, over HTTP", "listener"),
        Command("metrics", "serve /metrics for Prometheus", "metrics"),
    ),
}
COMMANDS = {command.name: command for rows in TABLE.values() for command in rows}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: arguments; None = the process's.

    Returns:
        The command's exit code: 0 · 1 failed · 2 wrong usage · 78 a setting that cannot work.
    """
    given = list(sys.argv[1:] if argv is None else argv)
    name = given[0] if given else ""
    if name in ("-h", "--help", "help"):
        print(overview())
        return 0
    if strange := [word for word in given if not _readable(word)]:
        print(_unreadable(strange[0]), file=sys.stderr)
        return USAGE
    if name == "--version":
        name = "version"
    if name not in COMMANDS:
        print(_mistaken(name), file=sys.stderr)
        return USAGE
    return _call(COMMANDS[name], given[1:])


def overview() -> str:
    """What `weirkeeper --help` prints."""
    width = max(map(len, COMMANDS)) + 2
    lines = [
        "Weirkeeper: the background half of a web application.",
        "",
        "usage: weirkeeper COMMAND [options]",
    ]
    for title, rows in TABLE.items():
        lines += ["", title, *(f"  {c.name:<{width}}{c.summary}" for c in rows)]
    lines += ["", "weirkeeper COMMAND --help tells more. Settings: docs/settings.md."]
    return "\n".join(lines)


def _readable(word: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in word)  # as Python keeps such bytes


def _unreadable(word: str) -> str:
    return f"weirkeeper: expected arguments in UTF-8; got {word!r}; correct it"


def _mistaken(name: str) -> str:
    if not name:
        return overview()
    from difflib import get_close_matches  # noqa: PLC0415  (only on a mistake)

    near = get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean `weirkeeper {near[0]}`?" if near else "weirkeeper --help lists them"
    return f"weirkeeper: expected a command; got {name!r}; {hint}"


def _call(command: Command, arguments: list[str]) -> int:
    if command.program:
        from panel.cli.programs import become  # noqa: PLC0415  (lazy: --help needs none of it)

        become(command.program, arguments)
    import signal  # noqa: PLC0415

    # While modules are imported Ctrl-C ends the process, as SIGTERM does: an exception that hits a
    # callback of Python's importer is ignored there, and whoever pressed the keys would wait.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        module, args = _prepared(command.name, arguments)
    finally:
        signal.signal(signal.SIGINT, before)
    return _guarded(command.name, module, args)


def _prepared(name: str, arguments: list[str]) -> tuple[ModuleType, argparse.Namespace]:
    import os  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415
    from runpy import run_path  # noqa: PLC0415

    # As each program does: a console script cannot before its own import. By its place: another's
    # `weirkeeper` may come first on the path.
    run_path(str(Path(__file__).parents[2] / "weirkeeper" / "identity.py"))["check"]()
    os.umask(0o077)  # as programs do: what an application writes at its import is its user's alone
    module = import_module(f"panel.cli.commands.{name}")
    return module, _parsed(name, module, arguments)


def _parsed(name: str, module: ModuleType, arguments: list[str]) -> argparse.Namespace:
    from panel.cli.parsing import Parser  # noqa: PLC0415  (argparse: 8 ms that --help need not pay)

    parser = Parser(f"weirkeeper {name}", description=module.HELP)
    module.add_arguments(parser)
    return parser.parse_args(arguments)


def _guarded(name: str, module: ModuleType, args: argparse.Namespace) -> int:
    """Run the command; what a person must mend becomes one clear line."""
    from shared.errors import ConfigurationError, WeirkeeperError  # noqa: PLC0415
    from shared.services import exit_codes  # noqa: PLC0415

    try:
        return int(module.run(args))
    except WeirkeeperError as error:
        print(f"weirkeeper {name}: {error}", file=sys.stderr)
        refused = isinstance(error, ConfigurationError)
        return exit_codes.CONFIGURATION if refused else exit_codes.FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader went away: `weirkeeper jobs list | head`
        _silence()
        return exit_codes.OK


def _silence() -> None:
    """Keep the interpreter from complaining about standard output once more at its end."""
    import os  # noqa: PLC0415

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
