"""`weirkeeper jobs list|get`: jobs as they stand, one with every attempt."""

from __future__ import annotations

import argparse
import json
from datetime import datetime

from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import print_json, state_style
from panel.cli.terminal import Column, clean, here
from shared.clock import SYSTEM
from shared.jobs.port import Job
from shared.jobs.states import STATES
from shared.ops.table import call

HELP = "list jobs, newest first, or show one with its attempts"
LIST = (
    Column("id", right=True),
    Column("kind", gives=True),
    Column("queue", gives=True),
    Column("state", style=state_style),
    Column("attempt", right=True),
    Column("age", right=True),
    Column("next try", right=True),
)
ATTEMPTS = (
    Column("run", right=True),
    Column("outcome", style=state_style),
    Column("started"),
    Column("took", right=True),
    Column("cause"),
    Column("error", gives=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|get")
    listing = actions.add_parser("list", help="newest jobs first")
    listing.add_argument("--kind", help="only this kind")
    listing.add_argument("--state", choices=STATES, help="only this state")
    listing.add_argument("--limit", type=int, default=20, metavar="N", help="at most N (20)")
    listing.add_argument("--before", metavar="ID", help="only jobs older than this one")
    add_desk_arguments(listing)
    one = actions.add_parser("get", help="one job with args, attempts, errors, next try")
    one.add_argument("id", metavar="ID")
    add_desk_arguments(one)


def run(args: argparse.Namespace) -> int:
    """Print a list, or one job; return 0."""
    return _list(args) if args.action == "list" else _get(args)


def _list(args: argparse.Namespace) -> int:
    names = ("kind", "state", "limit", "before")
    with open_desk(args.owner) as desk:
        jobs = call(desk, "tasks.list", {name: getattr(args, name) for name in names})
    if args.json:
        print_json(jobs)
    elif not jobs:
        print("no jobs" + (" of that kind or state" if args.kind or args.state else " yet"))
    else:
        print(here().table(LIST, [_row(job) for job in jobs]))
    return 0


def _get(args: argparse.Namespace) -> int:
    with open_desk(args.owner) as desk:
        job = call(desk, "tasks.get", {"id": args.id})
    if args.json:
        print_json(job)
    else:
        print("\n".join(_told(job)))
    return 0


def _row(job: Job) -> tuple[object, ...]:
    return (
        job.id,
        job.kind,
        job.queue,
        job.state,
        f"{job.attempt}/{job.max_attempts}",
        _since(job.created_at),
        _until(job.scheduled_at),
    )


def _told(job: Job) -> list[str]:
    terminal = here()
    facts = [
        ("job", job.id),
        ("kind", f"{job.kind} on queue {job.queue}, priority {job.priority}"),
        ("state", terminal.paint(job.state, state_style(job.state))),
        ("attempts", f"{job.attempt} of {job.max_attempts}"),
        ("created", f"{job.created_at} ({_since(job.created_at)} ago)"),
        ("args", json.dumps(job.args, ensure_ascii=False)),
    ]
    if job.scheduled_at:
        facts.append(("next try", f"{job.scheduled_at} (in {_until(job.scheduled_at)})"))
    if job.result is not None:
        facts.append(("result", json.dumps(job.result, ensure_ascii=False)))
    lines = [
        f"{terminal.paint(f'{name:<10}', 'bold')}{value if name == 'state' else clean(value)}"
        for name, value in facts
    ]
    if job.attempts:
        rows = [
            (a.run, a.outcome, a.started_at, _took(a.started_at, a.finished_at), a.cause, a.error)
            for a in job.attempts
        ]
        lines += ["", terminal.table(ATTEMPTS, rows)]
    return lines


def _since(moment: str) -> str:
    return _span((SYSTEM.wall() - datetime.fromisoformat(moment)).total_seconds())


def _until(moment: str | None) -> str:
    if moment is None:
        return "-"
    return _span((datetime.fromisoformat(moment) - SYSTEM.wall()).total_seconds())


def _took(started: str | None, finished: str) -> str:
    if started is None:
        return "-"
    span = datetime.fromisoformat(finished) - datetime.fromisoformat(started)
    return f"{span.total_seconds() * 1000:,.0f} ms"


def _span(seconds: float) -> str:
    """Two units at most: "3 d 4 h", "12 min", "5 s"."""
    left = max(0, round(seconds))
    for size, unit, smaller, name in (
        (86_400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if left >= size:
            rest = left % size // smaller
            return f"{left // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{left} s"
