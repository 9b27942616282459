"""`weirkeeper migrate`: schema and declarations. The work: weirkeeper.server.migrate."""

from __future__ import annotations

import argparse

from weirkeeper.server import migrate

HELP = "bring the database's schema and declarations up to date"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--wait", action="store_true", help="wait for a database that is away")


def run(args: argparse.Namespace) -> int:
    """Migrate; return 0, 1 (the database would not have it) or 78 (settings)."""
    return migrate.main(["--wait"] if args.wait else [])
