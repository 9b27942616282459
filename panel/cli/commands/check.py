"""`weirkeeper check`: refuses what cannot work, before supervisord hides it. Starts nothing."""

from __future__ import annotations

import argparse

from weirkeeper.server import main

HELP = "check settings, application, budget and supervisord.conf; start nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--supervisord",
        action="store_true",
        help="as plain supervisord will run it: refuse what `weirkeeper server` would add by "
        "itself, and make the home's folders",
    )


def run(args: argparse.Namespace) -> int:
    """Print the effective settings and return 0, or one line and 78."""
    return main.check(plain=args.supervisord)
