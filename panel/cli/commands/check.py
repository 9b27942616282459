"""`weirkeeper check`: refuses what cannot work, before supervisord hides it. Starts nothing."""

from __future__ import annotations

import argparse

from weirkeeper.server import main

HELP = "check settings, application, budget and supervisord.conf; start nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments: none."""
    del parser


def run(args: argparse.Namespace) -> int:
    """Print the effective settings and return 0, or one line and 78."""
    del args
    return main.main(["--check"])
