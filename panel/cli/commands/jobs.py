"""`weirkeeper jobs`: look at jobs, explain them, retry and cancel them, one or many."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from panel.cli import jobs_told
from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import complain, print_json
from panel.cli.parsing import whole
from shared.errors import InvalidArguments
from shared.jobs.states import STATES
from shared.ops.table import call

HELP = "look at jobs, explain them, retry and cancel them"
FILTERS = (
    ("--kind", "kind", "only this kind"),
    ("--queue", "queue", "only this queue"),
    ("--of", "owner_id", "only jobs of this owner"),
    ("--tag", "tag", "only with this tag"),
    ("--args", "args", "only with these args (a JSON object of keys that the kind declares)"),
    ("--created-after", "created_after", "only from this moment on (2026-01-31T12:00:00Z)"),
    ("--created-before", "created_before", "only before this moment"),
)
FILTER_NAMES = (*(name for _, name, _ in FILTERS), "state")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    overview = actions.add_parser("overview", help="how each kind stands")
    overview.add_argument("--kind", help="only this kind")
    listing = actions.add_parser("list", help="newest jobs first")
    _add_filters(listing)
    listing.add_argument("--limit", type=whole, default=20, metavar="N", help="at most N (20)")
    listing.add_argument("--before", metavar="ID", help="only jobs older than this one")
    for name, text in (
        ("get", "one job with args, attempts, errors, next try"),
        ("explain", "why a job stands where it stands"),
        ("retry", "run a discarded, cancelled or scheduled job once more, at once"),
        ("cancel", "end a job; stop it if it runs"),
    ):
        actions.add_parser(name, help=text).add_argument("id", metavar="ID")
    for name, text in (
        ("retry-all", "retry every discarded and cancelled job that fits"),
        ("cancel-all", "cancel every waiting and running job that fits"),
    ):
        many = actions.add_parser(name, help=text)
        _add_filters(many)
        many.add_argument("--all", action="store_true", help="meant, though nothing is named")
    actions.add_parser("periodic", help="periodic jobs: next tick, last starts, how they went")
    extra = actions.add_parser("run-periodic", help="run a periodic job now, beside its schedule")
    extra.add_argument("name", metavar="NAME")
    for action in actions.choices.values():
        add_desk_arguments(action)


def run(args: argparse.Namespace) -> int:
    """Do one action and print what it returns; return 0."""
    operation = f"tasks.{args.action.replace('-', '_')}"
    with open_desk(args.owner, _progress) as desk:
        result = call(desk, operation, _ARGUMENTS[args.action](args))
    if args.json:
        print_json(jobs_told.unread(result) if args.action == "list" else result)
    else:
        print(_SHOWN[args.action](args, result))
    return 0


def _add_filters(parser: argparse.ArgumentParser) -> None:
    for option, name, text in FILTERS:
        parser.add_argument(option, dest=name, metavar=name.upper(), help=text)
    parser.add_argument("--state", choices=STATES, help="only this state")


def _one(args: argparse.Namespace) -> dict[str, Any]:
    return {"id": args.id}


def _overview(args: argparse.Namespace) -> dict[str, Any]:
    return {"kind": args.kind}


def _filter(args: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(args, name) for name in FILTER_NAMES}
    if given["args"] is not None:
        try:
            given["args"] = json.loads(given["args"])
        except ValueError as error:
            raise InvalidArguments(
                f"--args: expected a JSON object; got {given['args']!r} ({error}); quote it"
            ) from error
    return given


def _list(args: argparse.Namespace) -> dict[str, Any]:
    return {**_filter(args), "limit": args.limit, "before": args.before}


def _many(args: argparse.Namespace) -> dict[str, Any]:
    return {**_filter(args), "all": args.all}


def _progress(number: int) -> None:
    complain(f"{number} jobs so far")


def _listed(args: argparse.Namespace, result: Any) -> str:
    if result:
        return jobs_told.listed(result)
    named = any(value is not None for value in (args.before, *_filter(args).values()))
    return "no jobs that fit" if named else "no jobs yet"


def _retried(_: argparse.Namespace, result: Any) -> str:
    left = ", and is left as it is" if result.state == "running" else ""
    return f"job {result.id} is {result.state}{left}"


def _cancelled(_: argparse.Namespace, result: Any) -> str:
    if result.state == "running":
        return f"job {result.id} is running and is being stopped"
    return f"job {result.id} is {result.state}"


def _numbered(args: argparse.Namespace, result: Any) -> str:
    done = "retried" if args.action == "retry-all" else "cancelled, or being stopped"
    return f"{result.jobs} jobs {done}"


_ARGUMENTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "overview": _overview,
    "list": _list,
    "get": _one,
    "explain": _one,
    "retry": _one,
    "cancel": _one,
    "retry-all": _many,
    "cancel-all": _many,
    "periodic": lambda _: {},
    "run-periodic": lambda args: {"name": args.name},
}
_SHOWN: dict[str, Callable[[argparse.Namespace, Any], str]] = {
    "overview": lambda _, kinds: jobs_told.overviewed(kinds),
    "list": _listed,
    "get": lambda _, job: jobs_told.told(job),
    "explain": lambda _, found: jobs_told.explained(found),
    "retry": _retried,
    "cancel": _cancelled,
    "retry-all": _numbered,
    "cancel-all": _numbered,
    "periodic": lambda _, found: jobs_told.periodics(found),
    "run-periodic": lambda args, started: f"{args.name} runs as job {started.id}",
}
