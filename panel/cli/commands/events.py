"""`weirkeeper events`: look at events, requeue what failed, replay to a subscriber, try globs."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from panel.cli import events_told
from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import complain, print_json
from panel.cli.parsing import whole
from panel.cli.terminal import clean
from shared.config.spelling import command_line
from shared.events.log import STATES, Replay
from shared.ops.desk import Desk
from shared.ops.events import Plan
from shared.ops.table import call

HELP = "look at events, requeue what failed, replay to a subscriber"
LOOK_AGAIN = 0.5  # seconds between two looks at a replay that is waited for
LISTED = ("data", "trace", "last_error", "next_try_at", "fanned_out_at", "deliveries")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="what waits for its fan-out, then the newest")
    listing.add_argument("--type", metavar="GLOB", help="only these types: order.paid, order.*")
    listing.add_argument("--subject", help="only about this")
    listing.add_argument("--of", dest="owner_id", metavar="OWNER", help="only of this owner")
    listing.add_argument("--state", choices=STATES, help="only this state")
    listing.add_argument("--limit", type=whole, default=20, metavar="N", help="at most N (20)")
    listing.add_argument("--before", metavar="ID", help="only what stands behind this one")
    one = actions.add_parser("get", help="one event with data, last error, subscribers' jobs")
    one.add_argument("id", metavar="ID")
    again = actions.add_parser("requeue", help="have the relay try again what it could not do")
    again.add_argument("id", metavar="ID", nargs="?")
    again.add_argument("--all", action="store_true", help="every poisoned event")
    skip = actions.add_parser("skip", help="give up one that the relay could not do")
    skip.add_argument("id", metavar="ID")
    _add_replay(actions)
    actions.add_parser("types", help="what may be recorded, and who wants it")
    dry = actions.add_parser("dry-run", help="whom the last events would have reached")
    dry.add_argument("--type", dest="types", action="append", metavar="GLOB", help="of these only")
    dry.add_argument("--limit", type=whole, default=100, metavar="N", help="the last N (100)")
    for action in actions.choices.values():
        add_desk_arguments(action)


def _add_replay(actions: Any) -> None:
    replay = actions.add_parser("replay", help="deliver events to a subscriber once more")
    replay.add_argument("--subscriber", required=True, metavar="NAME", help="who gets them")
    replay.add_argument("--since", required=True, metavar="MOMENT", help="2026-01-31T12:00:00Z")
    replay.add_argument("--until", required=True, metavar="MOMENT", help="not this moment itself")
    replay.add_argument("--type", default="*", metavar="GLOB", help="only these types")
    replay.add_argument("--confirm", type=whole, metavar="N", help="begin: the plan's number")
    replay.add_argument("--wait", action="store_true", help="show progress until it is done")
    listing = actions.add_parser("replays", help="the last replays and how far they are")
    listing.add_argument("--limit", type=whole, default=20, metavar="N", help="at most N (20)")
    status = actions.add_parser("replay-status", help="how far one is")
    status.add_argument("id", metavar="ID")
    cancel = actions.add_parser("replay-cancel", help="end one, and what of it has not begun")
    cancel.add_argument("id", metavar="ID")


def run(args: argparse.Namespace) -> int:
    """Do one action and print what it returns; return 0."""
    operation = f"events.{args.action.replace('-', '_')}"
    with open_desk(args.owner, _progress) as desk:
        result = call(desk, operation, _ARGUMENTS[args.action](args))
        if args.action == "replay" and args.wait:
            result = _awaited(desk, result)
    if args.json:
        print_json(_unread(result) if args.action == "list" else result)
    else:
        print(_SHOWN[args.action](args, result))
    return 0


def _given(*names: str) -> Callable[[argparse.Namespace], dict[str, Any]]:
    return lambda args: {name: getattr(args, name) for name in names}


def _progress(number: int) -> None:
    complain(f"{number} jobs so far")


def _awaited(desk: Desk, plan: Plan) -> Plan:
    """Look at a replay until it ended, and tell how far it is."""
    begun, told = plan.replay, -1
    while begun is not None and begun.state == "running":
        if begun.done != told:
            told = begun.done
            complain(f"{told:,} of {begun.events:,} events")
        desk.waits.wait(str(begun.job_id), LOOK_AGAIN)
        begun = call(desk, "events.replay_status", {"id": begun.id})
    return msgspec.structs.replace(plan, replay=begun)


def _unread(events: Any) -> list[dict[str, Any]]:
    """Events of a list for programs, without the fields that a list never reads."""
    return [{k: v for k, v in msgspec.to_builtins(e).items() if k not in LISTED} for e in events]


def _planned(_: argparse.Namespace, plan: Plan) -> str:
    again = f"{command_line()} {shlex.join(['events', *sys.argv[2:]])}"
    return events_told.planned(plan, again)


def _cancelled(_: argparse.Namespace, result: Any) -> str:
    ended: Replay = result.replay
    if ended.state != "cancelled":
        return f"replay {ended.id} had {clean(ended.state)} before"
    return (
        f"replay {ended.id} is cancelled after {ended.done} of {ended.events} events; "
        f"{result.jobs} jobs that had not begun are cancelled"
    )


_ARGUMENTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "list": _given("type", "subject", "owner_id", "state", "limit", "before"),
    "get": _given("id"),
    "requeue": _given("id", "all"),
    "skip": _given("id"),
    "replay": _given("subscriber", "since", "until", "type", "confirm"),
    "replays": _given("limit"),
    "replay-status": _given("id"),
    "replay-cancel": _given("id"),
    "types": _given(),
    "dry-run": _given("types", "limit"),
}
_SHOWN: dict[str, Callable[[argparse.Namespace, Any], str]] = {
    "list": lambda _, found: events_told.listed(found) if found else "no events that fit",
    "get": lambda _, event: events_told.told(event),
    "requeue": lambda _, done: f"the relay tries {done.events} events again",
    "skip": lambda _, done: f"event {done.id} is given up; no subscriber gets it",
    "replay": _planned,
    "replays": lambda _, found: events_told.replays(found) if found else "no replays yet",
    "replay-status": lambda _, replay: events_told.replays([replay]),
    "replay-cancel": _cancelled,
    "types": lambda _, found: events_told.types(found),
    "dry-run": lambda _, found: events_told.reaches(found) if found else "no events yet",
}
