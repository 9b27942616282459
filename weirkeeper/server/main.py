"""`weirkeeper server` and `weirkeeper check`: settings, checks, serve; errors become one line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from shared.clock import SYSTEM
from shared.config.loopback import RECEIVER
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.services import exit_codes
from shared.services.process import keep_files_private
from shared.services.stop import StopSignal, end_at_once
from weirkeeper.server import checks
from weirkeeper.server.serve import serve
from weirkeeper.server.telling import complain, say

SERVER = "weirkeeper server"
CHECK = "weirkeeper check"


def main(argv: list[str] | None = None) -> int:
    """Run the server to its end.

    Returns:
        0 stopped in order, 1 supervisord ended by itself, 75 the stop overran, 78 cannot start. A
        signal that comes before anything is started ends the process at once.
    """
    parser = argparse.ArgumentParser(SERVER, description="Start every process in the foreground.")
    parser.add_argument("--check", action="store_true", help="check everything, start nothing")
    add_receiver_argument(parser)
    parser.add_argument("--began", type=float, default=_now(), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    end_at_once()
    keep_files_private()  # before anything is written; inherited by all that it starts
    if args.check:
        return check(SERVER)
    began = SYSTEM.monotonic() - (_now() - args.began)
    stop = StopSignal()
    try:
        settings = Settings.load()
        deployment = checks.check(settings)
        for note in deployment.notes:
            complain(note)
        stop.install()
        return serve(settings, deployment, stop, began, receiver=args.local_receiver)
    except ConfigurationError as error:
        complain(str(error))
        return exit_codes.CONFIGURATION


def add_receiver_argument(parser: argparse.ArgumentParser) -> None:
    """Declare what `script/server` gives: whether a receiver on this machine may be called."""
    parser.add_argument(
        "--local-receiver",
        action="store_true",
        help=f"let webhooks be sent to http://{RECEIVER}, on this machine, to try them out; "
        "ignored with DATABASE_URL, and where any WEIRKEEPER_OUTBOUND_* is set",
    )


def check(
    name: str = CHECK, *, plain: bool = False, file: Path | None = None, as_json: bool = False
) -> int:
    """Check everything, print the effective settings, start nothing.

    Args:
        name: who asks, before what is told to standard error.
        plain: as `supervisord -c supervisord.conf` would run it: what `weirkeeper server` adds by
            itself must be there, and the folders are made.
        file: another supervisord.conf than the one that ships.
        as_json: print one JSON object, with notes and the problem in it.

    Returns:
        0, or 78 after one line.
    """
    notes: list[str] = []
    try:
        settings = Settings.load()
        deployment = checks.check(settings, file)
        notes += deployment.notes
        if plain:
            checks.check_plain(deployment, settings)
        else:
            notes += checks.check_server(deployment, settings)
        if name == CHECK:
            checks.check_handlers(settings, deployment.queues)
    except ConfigurationError as error:
        return _refused(str(error), name, notes, as_json=as_json)
    shown = {**settings.describe(), "connection_budget": deployment.budget.spelled()}
    if as_json:
        shown = {"ok": True, "notes": notes, "settings": shown}
    else:
        _complain_all(notes, name)
    say(json.dumps(shown, indent=2, default=str))
    return exit_codes.OK


def _refused(problem: str, name: str, notes: Sequence[str], *, as_json: bool) -> int:
    if as_json:
        say(json.dumps({"ok": False, "problem": problem, "notes": notes}, indent=2))
    else:
        complain(problem, name)
    return exit_codes.CONFIGURATION


def _complain_all(notes: Sequence[str], name: str) -> None:
    for note in notes:
        complain(note, name)


def _now() -> float:
    """Seconds since 1970, as the shell that called us counts them."""
    return SYSTEM.wall().timestamp()
