"""`weirkeeper pause`: start no more jobs of a queue or kind; no job moves, running ones go on."""

from __future__ import annotations

import argparse

from panel.cli.lanes import add_lane_arguments, change

HELP = "start no more jobs of a queue or kind; running ones go on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_lane_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Pause; return 0."""
    return change(args, "tasks.pause", "is paused; `weirkeeper resume` starts it again")
