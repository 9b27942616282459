"""`weirkeeper webhooks list|create|update|…`: what an owner does with endpoints.

Each action calls one operation and shows what it returns. A secret is printed once, by create and
rotate-secret.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any

from panel.cli.desk import add_desk_arguments, open_desk
from panel.cli.output import print_json
from panel.cli.parsing import whole
from panel.cli.terminal import clean
from panel.cli.webhooks import told
from shared.errors import InvalidArguments
from shared.ops.table import call
from shared.webhooks.body import FORMATS
from shared.webhooks.endpoint import ORDERINGS
from shared.webhooks.secret import SCHEMES

Arguments = Callable[[argparse.Namespace], dict[str, Any]]
Shown = Callable[[Any], str]
_FIELDS = (
    "url", "event_types", "description", "headers", "contact", "format", "signature", "ordering",
    "rate", "schedule",
)  # fmt: skip


_AWAY: dict[str, Any] = {"contact": None, "headers": {}, "rate": None, "schedule": None}
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,6})?(,[0-9]{1,9}(\.[0-9]{1,6})?)*", re.ASCII)


def add_arguments(actions: Any) -> None:
    """Declare the actions."""
    _action(actions, "list", "your endpoints, newest first", _nothing, told.endpoints)
    _on_one(actions, "get", "all about one endpoint", told.whole)
    _action(actions, "event-types", "types that may be sent", _nothing, told.types)
    create = _action(
        actions, "create", "add an endpoint; its secret is shown once", _given, told.secret
    )
    create.add_argument("url", metavar="URL")
    _add_fields(create, required=True)
    create.add_argument("--signature", choices=SCHEMES, help="v1 (HMAC) or v1a (Ed25519)")
    update = _action(actions, "update", "change what is given", _changed, told.endpoint)
    update.add_argument("id", metavar="ID")
    update.add_argument("--url")
    _add_fields(update, required=False)
    update.add_argument(
        "--without", action="append", choices=_AWAY, default=[], help="take away what it had"
    )
    rotate = _action(
        actions,
        "rotate-secret",
        "a new secret; the old one signs on for a while",
        _rotated,
        told.secret,
    )
    rotate.add_argument("id", metavar="ID")
    rotate.add_argument("--overlap", type=whole, metavar="S", help="seconds (86400)")
    _on_one(actions, "delete", "remove an endpoint; cancel what is on its way", told.deleted)
    _on_one(actions, "pause", "hold what would be sent", told.endpoint)
    _on_one(actions, "resume", "send again, whyever it was disabled", told.endpoint)
    _on_one(actions, "send-test", "send a test event to one endpoint", told.tested)


def _on_one(actions: Any, name: str, text: str, shown: Shown) -> None:
    parser = _action(actions, name, text, lambda args: {"id": args.id}, shown)
    parser.add_argument("id", metavar="ID")


def _action(
    actions: Any, name: str, text: str, arguments: Arguments, shown: Shown
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(name, help=text)
    add_desk_arguments(parser)
    operation = f"webhooks.{name.replace('-', '_')}"
    parser.set_defaults(act=lambda args: act(args, operation, arguments(args), shown))
    return parser


def act(args: argparse.Namespace, operation: str, arguments: dict[str, Any], shown: Shown) -> int:
    """Call an operation and show what it returns; return 0."""
    with open_desk(args.owner) as desk:
        result = call(desk, operation, arguments)
    if args.json:
        print_json(result)
    else:
        print(shown(result))
    return 0


def _add_fields(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--type", dest="event_types", action="append", metavar="GLOB", required=required,
        help="a type or a glob such as corpus.*; more than once for more",
    )  # fmt: skip
    parser.add_argument("--description")
    parser.add_argument(
        "--header", dest="headers", action="append", metavar="NAME=VALUE", help="sent beside ours"
    )
    parser.add_argument("--contact", metavar="ADDRESS", help="told by mail when it fails")
    parser.add_argument("--format", choices=FORMATS)
    parser.add_argument("--ordering", choices=ORDERINGS, help="strict: nothing overtakes")
    parser.add_argument("--rate", type=whole, metavar="N", help="requests a minute at most")
    parser.add_argument(
        "--schedule", type=_schedule, metavar="S,S,…", help="seconds before each further try"
    )


def _nothing(_: argparse.Namespace) -> dict[str, Any]:
    return {}


def _given(args: argparse.Namespace) -> dict[str, Any]:
    given = {name: getattr(args, name, None) for name in _FIELDS}
    if given["headers"] is not None:
        given["headers"] = _headers(given["headers"])
    return {name: value for name, value in given.items() if value is not None}


def _changed(args: argparse.Namespace) -> dict[str, Any]:
    given = _given(args)
    for name in args.without:
        if name in given:
            raise InvalidArguments(f"update: {name} is given and taken away; decide for one")
        given[name] = _AWAY[name]
    if not given:
        raise InvalidArguments("update: expected something to change; got nothing; see --help")
    return {"id": args.id, **given}


def _rotated(args: argparse.Namespace) -> dict[str, Any]:
    overlap = {} if args.overlap is None else {"overlap": float(args.overlap)}
    return {"id": args.id, **overlap}


def _headers(texts: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in map(_header, texts):
        if name in found:
            raise InvalidArguments(f"--header: {clean(name)} stands there twice; give it once")
        found[name] = value
    return found


def _header(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign):
        raise InvalidArguments(f"--header: expected NAME=VALUE; got {clean(name)!r}")
    return name, value


def _schedule(text: str) -> list[float]:
    if not _SECONDS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"expected seconds such as 5,300; got {text[:80]!r}")
    return [float(part) for part in text.split(",")]
