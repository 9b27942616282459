"""`weirkeeper server`: arguments, settings, checks, then serve; errors become one clear line."""

from __future__ import annotations

import argparse
import json

from shared.clock import SYSTEM
from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.services import exit_codes
from shared.services.stop import StopSignal
from weirkeeper.server.checks import Deployment, check, check_supervision
from weirkeeper.server.serve import serve
from weirkeeper.server.telling import complain, say


def main(argv: list[str] | None = None) -> int:
    """Run the server to its end.

    Returns:
        0 stopped in order, 1 supervisord ended by itself, 75 the stop overran, 78 cannot start.
    """
    parser = argparse.ArgumentParser(
        "weirkeeper server", description="Start every process in the foreground."
    )
    parser.add_argument("--check", action="store_true", help="check everything, start nothing")
    parser.add_argument("--began", type=float, default=_now(), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    began = SYSTEM.monotonic() - (_now() - args.began)
    stop = StopSignal()
    stop.install()
    try:
        settings = Settings.load()
        deployment = check(settings)
        if args.check:
            return _told(settings, deployment)
        return serve(settings, deployment, stop, began)
    except ConfigurationError as error:
        complain(str(error))
        return exit_codes.CONFIGURATION


def _now() -> float:
    """Seconds since 1970, as the shell that called us counts them."""
    return SYSTEM.wall().timestamp()


def _told(settings: Settings, deployment: Deployment) -> int:
    check_supervision(deployment, settings)
    shown = {**settings.describe(), "connection_budget": deployment.budget.spelled()}
    say(json.dumps(shown, indent=2, default=str))
    return exit_codes.OK
