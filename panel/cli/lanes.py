"""What `weirkeeper pause` and `weirkeeper resume` have in common: a queue or a kind is named."""

from __future__ import annotations

import argparse

from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import print_json
from shared.ops.table import call


def add_lane_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments: exactly one of a queue and a kind."""
    lane = parser.add_mutually_exclusive_group(required=True)
    lane.add_argument("--queue", metavar="NAME", help="every kind of this queue")
    lane.add_argument("--kind", metavar="NAME", help="this kind alone")
    add_desk_arguments(parser)


def change(args: argparse.Namespace, operation: str, said: str) -> int:
    """Run the operation, say what it did, return 0."""
    with open_desk(args.owner) as desk:
        result = call(desk, operation, {"queue": args.queue, "kind": args.kind})
    if args.json:
        print_json(result)
    else:
        name = f"queue {args.queue}" if args.queue else f"kind {args.kind}"
        print(f"{name} {said}")
    return 0
