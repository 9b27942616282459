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
from dataclasses import asdict, dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from panel.cli.parsing import within
from panel.cli.terminal import clean
from panel.cli.webhooks.verify import add_secret_argument, read_secret
from shared.clock import SYSTEM
from shared.config.loopback import RECEIVER, check_loopback
from shared.services import web
from shared.services.stop import StopSignal
from shared.webhooks.secret import Secret
from shared.webhooks.verification import ID, verify

LARGEST = 1024 * 1024  # bytes of a body
REMEMBERED = 10_000  # ids


def add_arguments(actions: Any) -> None:
    """Declare the action's arguments."""
    parser = actions.add_parser("receiver", help="receive, verify and print; until Ctrl-C")
    parser.add_argument("--host", default=RECEIVER, help=f"loopback address ({RECEIVER})")
    parser.add_argument(
        "--port", type=within(0, 65_535), default=8712, help="0 = a free one (8712)"
    )
    add_secret_argument(parser, required=False)
    parser.add_argument(
        "--answer", type=within(200, 599), default=204, metavar="N", help="status (204)"
    )
    parser.add_argument("--retry-after", metavar="WHEN", help="answer with this header, too")
    parser.add_argument("--count", type=within(1, 10**9), metavar="N", help="end after N requests")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each")
    parser.set_defaults(act=run)


def run(args: argparse.Namespace) -> int:
    """Receive until told to stop; return 0 when everything verified, else 1."""
    secret = read_secret(args.secret_file) if args.secret_file else None
    stop = StopSignal()

    def tell(one: Came) -> None:
        print(json.dumps(asdict(one)) if args.json else _line(one), flush=True)
        if args.count is not None and receiving.number >= args.count:
            stop.request()

    receiving = Receiving(secret, tell, args.answer, args.retry_after)
    with closing(web.bind(check_loopback(args.host), args.port, "--port")) as bound:
        stop.install()
        print(f"receives on http://{web.address(bound)}/", flush=True)
        web.serve(receiving.app(), bound, stop)
    return 1 if receiving.wrong else 0


@dataclass(frozen=True, slots=True)
class Came:
    """One request.

    Attributes:
        id: its webhook-id.
        time: the how manyth with this id.
        problem: "" = it verifies.
        why: what is wrong, for people.
    """

    id: str
    time: int
    problem: str
    why: str
    body: str


class Receiving:
    """What answers every POST, and knows what came so far.

    Args:
        secret: to verify with; None = nothing is verified.
        tell: called with each request, on the event loop.
        answer: status of every answer.
        retry_after: a header of every answer, too.
    """

    def __init__(
        self,
        secret: Secret | None,
        tell: Callable[[Came], None],
        answer: int = 204,
        retry_after: str | None = None,
    ) -> None:
        self._secret = secret
        self._tell = tell
        self._answer = answer
        self._headers = {"retry-after": retry_after} if retry_after else None
        self._seen: OrderedDict[str, int] = OrderedDict()
        self.number = 0
        self.wrong = 0

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(routes=[Route("/{path:path}", self.take, methods=["POST"])])

    async def take(self, request: Request) -> Response:
        """Receive one request."""
        body = await _body(request)
        if body is None:
            return PlainTextResponse("too large\n", 413)
        self.number += 1
        self._tell(self._came(request, body))
        return Response(status_code=self._answer, headers=self._headers)

    def _came(self, request: Request, body: bytes) -> Came:
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
        return Came(message, times, problem, why, body.decode("utf-8", "replace"))


async def _body(request: Request) -> bytes | None:
    """The body; None = it is too large."""
    got = bytearray()
    async for piece in request.stream():
        got += piece
        if len(got) > LARGEST:
            return None
    return bytes(got)


def _line(one: Came) -> str:
    verdict = f"{one.problem} ({one.why})" if one.problem else "verified"
    again = f", time {one.time}" if one.time > 1 else ""
    return f"{clean(one.id)}{again}: {clean(verdict)}: {clean(one.body)}"
