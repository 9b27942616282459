"""`weirkeeper webhooks verify FILE`: check a captured request, and say what is wrong with it.

Reads a request as it came over the wire: headers (after a request line, if there is one), an empty
line, and the body, whose every byte counts. The secret comes from a file, never from an argument,
which everybody on the machine could read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from panel.cli.output import print_json
from panel.cli.parsing import within
from panel.cli.terminal import clean
from shared.clock import SYSTEM
from shared.errors import InvalidArguments
from shared.webhooks.secret import Secret, parse_secret
from shared.webhooks.verification import TOLERANCE, Verification
from shared.webhooks.verification import verify as check


def add_arguments(actions: Any) -> None:
    """Declare the action's arguments."""
    parser = actions.add_parser("verify", help="check a captured request; say what is wrong")
    parser.add_argument("request", metavar="FILE", help="headers, an empty line, body; - = stdin")
    parser.add_argument("--body", metavar="FILE", help="the body, when FILE holds headers alone")
    add_secret_argument(parser)
    parser.add_argument(
        "--at", type=within(0, 10**12), metavar="UNIX", help="when it came, in unix seconds (now)"
    )
    parser.add_argument(
        "--tolerance",
        type=within(0, 10**9),
        default=TOLERANCE,
        metavar="N",
        help=f"seconds ({TOLERANCE})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(act=run)


def add_secret_argument(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Declare where the secret comes from."""
    parser.add_argument(
        "--secret-file",
        required=required,
        metavar="FILE",
        help="holds the secret: whsec_… or whpk_…",
    )


def run(args: argparse.Namespace) -> int:
    """Print what came out; return 0 = it verifies, 1 = it does not."""
    secret = read_secret(args.secret_file)
    headers, body = split(_read(args.request))
    if args.body:
        body = _read(args.body)
    now = SYSTEM.wall().timestamp() if args.at is None else float(args.at)
    found = check(secret, headers, body, now=now, tolerance=args.tolerance)
    if args.json:
        print_json({"ok": found.ok, "problem": found.problem, "told": found.told})
    else:
        print(_told(found, captured=args.at is None))
    return 0 if found.ok else 1


def read_secret(path: str) -> Secret:
    """The secret that a file holds.

    Raises:
        InvalidArguments: there is none.
    """
    text = _read(path).decode("utf-8", "replace").strip()
    return parse_secret(text)


def split(captured: bytes) -> tuple[dict[str, str], bytes]:
    """(headers, body) of a captured request; lines may end in CR LF, as over the wire, or in LF.

    Raises:
        InvalidArguments: there are no headers.
    """
    ends = [(captured.find(mark), len(mark)) for mark in (b"\r\n\r\n", b"\n\n")]
    at, length = min(((a, n) for a, n in ends if a >= 0), default=(len(captured), 0))
    lines = captured[:at].decode("latin-1").splitlines()
    pairs = [line.partition(":") for line in lines if ":" in line.split(" ", 1)[0]]
    if not pairs:
        raise InvalidArguments(
            "request: expected headers such as `webhook-id: …`, an empty line, then the body; "
            "got no header"
        )
    return {name: value.strip() for name, _, value in pairs}, captured[at + length :]


def _read(path: str) -> bytes:
    """A file, or standard input.

    Raises:
        InvalidArguments: it cannot be read.
    """
    try:
        return sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InvalidArguments(f"{path}: expected a file to read; got {error.strerror}") from error


def _told(found: Verification, *, captured: bool) -> str:
    if found.ok:
        return "it verifies"
    hint = "\ncaptured earlier? give the moment with --at" if captured else ""
    late = hint if found.problem == "too_old" else ""
    return f"it does not verify: {found.problem}\n{clean(found.told)}{late}"
