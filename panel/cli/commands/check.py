"""`weirkeeper check`: refuses what cannot work, before supervisord hides it. Starts nothing.

Packages, settings, home, application, every handler's import, connection budget, schema, ports and
supervisord.conf. A database that is away is told and refuses nothing: programs wait for it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from weirkeeper.server import main

HELP = "check settings, application, handlers, budget and supervisord.conf; start nothing"
SHIPPED = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "--supervisord",
        nargs="?",
        const=SHIPPED,
        metavar="FILE",
        help="as plain supervisord will run this file (default: the one that ships): refuse what "
        "`weirkeeper server` would add by itself, and make the home's folders",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs")


def run(args: argparse.Namespace) -> int:
    """Print the effective settings and return 0, or one line and 78."""
    file = Path(args.supervisord).absolute() if args.supervisord else None
    return main.check(plain=args.supervisord is not None, file=file, as_json=args.json)
