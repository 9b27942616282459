"""`weirkeeper webhooks`: endpoints and what was sent to them; tools for who receives."""

from __future__ import annotations

import argparse

from panel.cli.webhooks import check_url, deliveries, endpoints, receiver, verify

HELP = "endpoints, what was sent to them, why not; tools for receivers"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments; each action says by `act` what runs it."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action in (endpoints, deliveries, check_url, verify, receiver):
        action.add_arguments(actions)


def run(args: argparse.Namespace) -> int:
    """Run one action; return its exit code."""
    return int(args.act(args))
