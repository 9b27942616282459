"""Routes that answer GET and nothing else, each at one address; refusals are JSON.

Stands between shared.services.web and a program's endpoints (listener, metrics). Decides nothing
about what is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

NO_STORE = {"cache-control": "no-store"}

Endpoint = Callable[[Request], Awaitable[Response]]
Answer = Callable[[Request, Exception], Awaitable[Response]]


def application(
    endpoints: Mapping[str, Endpoint],
    shown: tuple[str, ...],
    errors: Mapping[type[Exception], Answer] | None = None,
) -> Starlette:
    """The ASGI application.

    Args:
        endpoints: by path; a path with another ending is another path, and none is redirected.
        shown: the routes as a 404 lists them.
        errors: answers to exceptions of the endpoints.
    """

    async def refused(_request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return refusal(500, "an error of ours; the log has it")
        if error.status_code == 404:
            return refusal(404, f"no such route; there are: GET {', GET '.join(shown)}")
        return refusal(error.status_code, "only GET is answered", headers=error.headers)

    app = Starlette(
        routes=[_route(path, endpoint) for path, endpoint in endpoints.items()],
        exception_handlers={HTTPException: refused, Exception: refused, **(errors or {})},
    )
    app.router.redirect_slashes = False
    return app


def refusal(
    status: int, message: str, *, headers: Mapping[str, str] | None = None, **more: str
) -> Response:
    """The one form of a refusal.

    Args:
        status: of HTTP; a 503 says when to come again.
        message: what was expected, what came, what to do.
        headers: in addition.
        more: fields beside `error`.
    """
    again = {"retry-after": "1"} if status == 503 else {}
    told: dict[str, Any] = {"error": message, **more}
    return JSONResponse(told, status, {**NO_STORE, **again, **(headers or {})})


def health(reason: str) -> Response:
    """200, or 503 with the reason why not."""
    body = {"ok": False, "reason": reason} if reason else {"ok": True}
    return JSONResponse(body, 503 if reason else 200, NO_STORE)


def _route(path: str, endpoint: Endpoint) -> Route:
    route = Route(path, endpoint, methods=["GET"])
    route.methods = {"GET"}  # the constructor adds HEAD
    return route
