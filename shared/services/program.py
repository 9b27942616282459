"""How every program begins and ends: arguments, settings, log, exit code.

Each `main` calls `run` with what is its own. Errors that a person must mend become one clear line
and exit code 78; a loop that died becomes 1, and the supervisor starts the program again.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
from collections.abc import Callable, Sequence

from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.services import exit_codes
from shared.services.process import die_with_parent, forbid_core_dumps, keep_files_private
from shared.services.stop import StopSignal, end_at_once
from shared.telemetry import logs

Body = Callable[[Settings, argparse.Namespace, StopSignal], int]

# What a person types for each program: usage and errors name that, logs name the program.
COMMANDS = {
    "workers": "weirkeeper worker",
    **{name: f"weirkeeper {name}" for name in ("relay", "listener", "metrics")},
}

log = logging.getLogger(__name__)


def run(
    parser: argparse.ArgumentParser,
    argv: Sequence[str] | None,
    body: Body,
    check: Callable[[Settings, argparse.Namespace], dict[str, object]],
) -> int:
    """Run a program to its end.

    Args:
        parser: named as the program, with its own arguments; `--check` is added here.
        argv: arguments; None = the process's.
        body: the program; returns its exit code. Signals arrive at the StopSignal.
        check: refuses what cannot work, and returns what `--check` prints beside the settings.

    Returns:
        An exit code of shared.services.exit_codes.
    """
    parser.add_argument(
        "--check", action="store_true", help="print the effective settings and exit"
    )
    name = parser.prog
    parser.prog = COMMANDS.get(name, name)
    args = parser.parse_args(argv)
    end_at_once()
    keep_files_private()  # before anything is written; inherited by all children
    stop = StopSignal()
    die_with_parent(signal.SIGTERM)  # a supervisor killed by SIGKILL must not leave us behind
    try:
        settings = Settings.load()
        if not settings.core_dumps:
            forbid_core_dumps()  # before an application's imports; inherited by all children
        found = check(settings, args)
        if args.check:
            print(json.dumps({**settings.describe(), **found}, indent=2, default=str))  # noqa: T201
            return exit_codes.OK
        stop.install()  # before anything that waits or must be put in order
        logs.setup(settings.log_level, process=name, slot=getattr(args, "slot", name))
        code = body(settings, args, stop)
    except ConfigurationError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)  # noqa: T201
        return exit_codes.CONFIGURATION
    if stop.failure is not None:
        log.error("stopped by the failure of a loop: %s", stop.failure)
        return exit_codes.FAILED
    return code
