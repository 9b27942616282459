"""`weirkeeper webhooks deliveries|attempts|…`: what was sent, why not, and sending it once more."""

from __future__ import annotations

import argparse
import threading
from typing import Any

from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import complain, print_json
from panel.cli.parsing import whole, within
from panel.cli.webhooks import told
from panel.cli.webhooks.endpoints import act
from shared.clock import SYSTEM
from shared.ops.desk import Desk
from shared.ops.table import call
from shared.webhooks.records import Replay

STATES = ("pending", "delivered", "failed", "cancelled")
LOOK = 0.5  # seconds between two looks at a replay


def add_arguments(actions: Any) -> None:
    """Declare the actions."""
    listing = _parser(
        actions, "deliveries", "what was sent to an endpoint, newest first", _deliveries
    )
    listing.add_argument("id", metavar="ENDPOINT")
    listing.add_argument("--state", choices=STATES)
    listing.add_argument("--before", metavar="SEQ", help="only events before this number")
    listing.add_argument("--limit", type=whole, default=20, metavar="N", help="at most N (20)")
    tries = _parser(actions, "attempts", "each request of a delivery and its answer", _attempts)
    tries.add_argument("id", metavar="DELIVERY")
    gaps = _parser(actions, "missed", "an endpoint's events after a sequence number", _missed)
    gaps.add_argument("id", metavar="ENDPOINT")
    gaps.add_argument("--after", default="0", metavar="SEQ")
    gaps.add_argument("--limit", type=whole, default=50, metavar="N", help="at most N (50)")
    why = _parser(actions, "explain", "how an event stands with an endpoint", _explain)
    why.add_argument("endpoint_id", metavar="ENDPOINT")
    why.add_argument("event_id", metavar="EVENT")
    again = _parser(actions, "redeliver", "send a delivery, or all of an event, again", _redeliver)
    which = again.add_mutually_exclusive_group(required=True)
    which.add_argument("--delivery", dest="delivery_id", metavar="ID")
    which.add_argument("--event", dest="event_id", metavar="ID")
    plan = _parser(actions, "plan-replay", "count what sending a span of time again sends", _plan)
    plan.add_argument("id", metavar="ENDPOINT")
    plan.add_argument("--since", required=True, metavar="MOMENT", help="2026-01-31T12:00:00Z")
    plan.add_argument("--until", required=True, metavar="MOMENT")
    plan.add_argument("--failed-only", action="store_true", help="only what was given up")
    start = _parser(actions, "start-replay", "run a plan, in small batches", _start)
    start.add_argument("id", metavar="REPLAY")
    start.add_argument(
        "--wait", type=within(0, 10**6), default=0, metavar="S", help="watch it so long"
    )
    cancel = _parser(actions, "cancel-replay", "send no more of a replay", _cancel)
    cancel.add_argument("id", metavar="REPLAY")
    progress = _parser(actions, "replay", "how far a replay has come", _status)
    progress.add_argument("id", metavar="REPLAY")


def _parser(actions: Any, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    add_desk_arguments(parser)
    parser.set_defaults(act=run)
    return parser


def _deliveries(args: argparse.Namespace) -> int:
    given = {n: getattr(args, n) for n in ("id", "state", "before", "limit")}
    return act(args, "webhooks.deliveries", given, told.deliveries)


def _attempts(args: argparse.Namespace) -> int:
    return act(args, "webhooks.attempts", {"id": args.id}, told.attempts)


def _missed(args: argparse.Namespace) -> int:
    given = {n: getattr(args, n) for n in ("id", "after", "limit")}
    return act(args, "webhooks.missed", given, told.missed)


def _explain(args: argparse.Namespace) -> int:
    given = {"endpoint_id": args.endpoint_id, "event_id": args.event_id}
    return act(args, "webhooks.explain", given, told.explained)


def _redeliver(args: argparse.Namespace) -> int:
    given = {"delivery_id": args.delivery_id, "event_id": args.event_id}
    return act(args, "webhooks.redeliver", given, told.started)


def _status(args: argparse.Namespace) -> int:
    return act(args, "webhooks.replay", {"id": args.id}, told.replay)


def _cancel(args: argparse.Namespace) -> int:
    return act(args, "webhooks.cancel_replay", {"id": args.id}, told.replay)


def _plan(args: argparse.Namespace) -> int:
    given = {n: getattr(args, n) for n in ("id", "since", "until", "failed_only")}
    return act(args, "webhooks.plan_replay", given, told.planned)


def _start(args: argparse.Namespace) -> int:
    with open_desk(args.owner) as desk:
        found: Replay = call(desk, "webhooks.start_replay", {"id": args.id})
        found = _watched(desk, found.id, args.wait)
    if args.json:
        print_json(found)
    else:
        print(told.replay(found))
    return 0


def _watched(desk: Desk, replay_id: str, seconds: float) -> Replay:
    """Tell how far a replay comes, for so long. Ctrl-C ends the watching, not the replay."""
    deadline, pause = SYSTEM.monotonic() + seconds, threading.Event()
    found: Replay = call(desk, "webhooks.replay", {"id": replay_id})
    while found.state == "running" and SYSTEM.monotonic() < deadline:
        pause.wait(LOOK)
        found = call(desk, "webhooks.replay", {"id": replay_id})
        complain(f"{found.sent} of {found.total} on their way")
    return found
