"""`weirkeeper server` and `weirkeeper check`: settings, checks, serve; errors become one line."""

from __future__ import annotations

import argparse
import json

from shared.clock import SYSTEM
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.services import exit_codes
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
    parser.add_argument("--began", type=float, default=_now(), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    end_at_once()
    if args.check:
        return check(SERVER)
    began = SYSTEM.monotonic() - (_now() - args.began)
    stop = StopSignal()
    try:
        settings = Settings.load()
        deployment = checks.check(settings)
        stop.install()
        return serve(settings, deployment, stop, began)
    except ConfigurationError as error:
        complain(str(error))
        return exit_codes.CONFIGURATION


def check(name: str = CHECK, *, plain: bool = False) -> int:
    """Check everything, print the effective settings, start nothing.

    Args:
        name: who asks, before what is told to standard error.
        plain: as `supervisord -c supervisord.conf` would run it: what `weirkeeper server` adds by
            itself must be there, and the folders are made.

    Returns:
        0, or 78 after one line.
    """
    try:
        settings = Settings.load()
        deployment = checks.check(settings)
        if plain:
            checks.check_plain(deployment, settings)
        else:
            for line in checks.check_server(deployment, settings):
                complain(line, name)
    except ConfigurationError as error:
        complain(str(error), name)
        return exit_codes.CONFIGURATION
    shown = {**settings.describe(), "connection_budget": deployment.budget.spelled()}
    say(json.dumps(shown, indent=2, default=str))
    return exit_codes.OK


def _now() -> float:
    """Seconds since 1970, as the shell that called us counts them."""
    return SYSTEM.wall().timestamp()
