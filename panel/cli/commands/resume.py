"""`weirkeeper resume`: start jobs of a queue or kind again, at once."""

from __future__ import annotations

import argparse

from panel.cli.lanes import add_lane_arguments, change

HELP = "start jobs of a queue or kind again, at once"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_lane_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Resume; return 0."""
    return change(args, "tasks.resume", "is not paused any more")
