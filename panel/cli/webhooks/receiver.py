"""`weirkeeper webhooks receiver`: a small receiver on this machine that verifies and prints.

For trying deliveries out, and for the demonstration. Answers every POST as it is told to, prints a
line for each, and knows which ids it has had before, as every receiver should. Bound to loopback.
"""

from __future__ import annotations

import argparse
import json
from collections import OrderedDict
from collections.abc import Callable
from contextlib import closing
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from panel.cli.parsing import whole
from panel.cli.terminal import clean
from panel.cli.webhooks.verify import add_secret_argument, read_secret
from shared.clock import SYSTEM
from shared.config.loopback import check_loopback
from shared.services import web
from shared.services.stop import StopSignal
from shared.webhooks.secret import Secret
from shared.webhooks.verification import ID, verify

LARGEST = 1024 * 1024  # bytes of a body
REMEMBERED = 10_000  # ids


def add_arguments(actions: Any) -> None:
    """Declare the action's arguments."""
    parser = actions.add_parser("receiver", help="receive, verify and print; until Ctrl-C")
    parser.add_argument("--host", default="127.0.0.1", help="loopback address (127.0.0.1)")
    parser.add_argument("--port", type=whole, default=8712, help="0 = a free one (8712)")
    add_secret_argument(parser, required=False)
    parser.add_argument("--answer", type=whole, default=204, metavar="N", help="status (204)")
    parser.add_argument("--retry-after", metavar="WHEN", help="answer with this header, too")
    parser.add_argument("--count", type=whole, metavar="N", help="end after N requests")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each")
    parser.set_defaults(act=run)


def run(args: argparse.Namespace) -> int:
    """Receive until told to stop; return 0 when everything verified, else 1."""
    secret = read_secret(args.secret_file) if args.secret_file else None
    stop = StopSignal()
    with closing(web.bind(check_loopback(args.host), args.port, "--port")) as bound:
        receiving = Receiving(secret, args, stop.request)
        stop.install()
        print(f"receives on http://{web.address(bound)}/", flush=True)
        web.serve(receiving.app(), bound, stop)
    return 1 if receiving.wrong else 0


class Receiving:
    """What came so far.

    Args:
        secret: to verify with; None = nothing is verified.
        args: answer, retry_after, count, json.
        enough: called when `count` requests have come.
    """

    def __init__(
        self, secret: Secret | None, args: argparse.Namespace, enough: Callable[[], None]
    ) -> None:
        self._secret = secret
        self._args = args
        self._enough = enough
        self._seen: OrderedDict[str, int] = OrderedDict()
        self._number = 0
        self.wrong = 0

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(routes=[Route("/{path:path}", self.take, methods=["POST"])])

    async def take(self, request: Request) -> Response:
        """Receive one request."""
        body = await _body(request)
        if body is None:
            return PlainTextResponse("too large\n", 413)
        told = self._verdict(request, body)
        print(json.dumps(told) if self._args.json else _line(told), flush=True)
        self._number += 1
        if self._args.count is not None and self._number >= self._args.count:
            self._enough()
        later = self._args.retry_after
        return Response(
            status_code=self._args.answer, headers={"retry-after": later} if later else None
        )

    def _verdict(self, request: Request, body: bytes) -> dict[str, Any]:
        message = request.headers.get(ID, "")
        times = self._seen.pop(message, 0) + 1
        self._seen[message] = times
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        problem, why = "unchecked", "no --secret-file was given"
        if self._secret is not None:
            now = SYSTEM.wall().timestamp()
            found = verify(self._secret, request.headers, body, now=now)
            problem, why = found.problem, found.told
            self.wrong += not found.ok
        told = {"id": message, "time": times, "problem": problem, "why": why}
        return {**told, "body": body.decode("utf-8", "replace")}


async def _body(request: Request) -> bytes | None:
    """The body; None = it is too large."""
    got = bytearray()
    async for piece in request.stream():
        got += piece
        if len(got) > LARGEST:
            return None
    return bytes(got)


def _line(told: dict[str, Any]) -> str:
    verdict = f"{told['problem']} ({told['why']})" if told["problem"] else "verified"
    again = f", time {told['time']}" if told["time"] > 1 else ""
    return f"{clean(told['id'])}{again}: {clean(verdict)}: {clean(told['body'])}"
