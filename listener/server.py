"""The listener's routes: what is asked, and what each answer means.

    GET /v1/jobs/{id}/wait?max=2                       200 final · 202 not yet
    GET /v1/events/{id}/wait?subscription=…&max=2      200 fanned out · 202 not yet
    GET /livez · /readyz                               200 · 503

Otherwise 400 (a bad id or bound, said clearly), 404 (no such id or route), 405 (not GET), 503 with
Retry-After (`reason`: full, database). Stands before listener.waiting. Reads nothing itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from listener.waiting import CallerGone, Waiting
from shared.clock import SYSTEM
from shared.errors import InvalidArguments, NotFound, WaitersFull, WeirkeeperError
from shared.jobs.kinds import MAX_NAME
from shared.notices.channels import FANOUT, FINAL, LABELS, is_event_id, is_job_id
from shared.services.routing import NO_STORE, application, health, refusal
from shared.telemetry.instruments import Instruments

DEFAULT_SECONDS = 2.0
MOST_SECONDS = 30.0
# What float() takes besides is no number of ours: underscores, exponents, signs, other digits.
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
PATHS = (
    "/v1/jobs/{id}/wait?max=SECONDS",
    "/v1/events/{id}/wait?subscription=NAME&max=SECONDS",
    "/livez",
    "/readyz",
)
GONE = 499  # what nobody will read: the caller hung up


class Routes:
    """The listener over HTTP.

    Args:
        waiting: waits for callers.
        live: what is wrong with the program's loops, or "".
        ready: why callers had better go elsewhere, or "".
        instruments: counts waits.
    """

    def __init__(
        self,
        waiting: Waiting,
        live: Callable[[], str],
        ready: Callable[[], str],
        instruments: Instruments,
    ) -> None:
        self._waiting = waiting
        self._live = live
        self._ready = ready
        self._instruments = instruments
        self._now = dict.fromkeys(LABELS, 0)

    def app(self) -> Starlette:
        """The ASGI application."""
        return application(
            {
                "/v1/jobs/{id}/wait": self.job,
                "/v1/events/{id}/wait": self.event,
                "/livez": self.livez,
                "/readyz": self.readyz,
            },
            PATHS,
            {
                InvalidArguments: _invalid,
                NotFound: _not_found,
                WaitersFull: _full,
                WeirkeeperError: _away,
                CallerGone: _gone,
            },
        )

    async def job(self, request: Request) -> Response:
        """Wait until a job is final."""
        job_id = request.path_params["id"]
        if not is_job_id(job_id):
            raise InvalidArguments(f"id: expected a job's decimal id; got {job_id[:40]!r}")
        found = await self._wait(request, FINAL, job_id, lambda answer: answer.finished)
        body: dict[str, Any] = {
            "id": job_id,
            "state": found.state,
            "finished": found.finished,
            "result": found.result,
        }
        if found.progress is not None:
            body["progress"] = asdict(found.progress)
        return _answer(body, done=found.finished)

    async def event(self, request: Request) -> Response:
        """Wait until an event has been fanned out; tell its job for one subscription, or all."""
        event_id = request.path_params["id"].lower()
        if not is_event_id(event_id):
            raise InvalidArguments(f"id: expected an event's uuid; got {event_id[:40]!r}")
        subscription = request.query_params.get("subscription", "")
        if not 0 < len(subscription) <= MAX_NAME:
            raise InvalidArguments(
                f"subscription: expected the name of one; got {subscription[:40]!r}; "
                "add ?subscription=NAME"
            )
        jobs = await self._wait(request, FANOUT, event_id, lambda answer: answer is not None)
        body = {
            "id": event_id,
            "subscription": subscription,
            "finished": jobs is not None,
            "job_id": None if jobs is None else jobs.get(subscription),
        }
        return _answer(body, done=jobs is not None)

    async def livez(self, _request: Request) -> Response:
        """Whether the loops turn."""
        return health(self._live())

    async def readyz(self, _request: Request) -> Response:
        """Whether callers can be served."""
        return health(self._ready())

    async def _wait(
        self, request: Request, channel: str, key: str, done: Callable[[Any], bool]
    ) -> Any:
        seconds = _bound(request)
        try:
            with self._counted(channel):
                return await self._waiting.wait(
                    channel, key, done, seconds, request.is_disconnected
                )
        except WaitersFull:
            self._instruments.listener_rejected_total.labels(LABELS[channel]).inc()
            raise

    @contextmanager
    def _counted(self, channel: str) -> Iterator[None]:
        begun = SYSTEM.monotonic()
        self._count(channel, 1)
        try:
            yield
        finally:
            self._count(channel, -1)
            seconds = SYSTEM.monotonic() - begun
            self._instruments.listener_wait_seconds.labels(LABELS[channel]).observe(seconds)

    def _count(self, channel: str, change: int) -> None:
        self._now[channel] += change
        self._instruments.listener_waiters.labels(LABELS[channel]).set(self._now[channel])


def _bound(request: Request) -> float:
    raw = request.query_params.get("max", str(DEFAULT_SECONDS))
    if _SECONDS.fullmatch(raw) and float(raw) <= MOST_SECONDS:
        return float(raw)
    raise InvalidArguments(
        f"max: expected a decimal number of seconds from 0 to {MOST_SECONDS:g}; got {raw[:40]!r}"
    )


def _answer(body: dict[str, Any], *, done: bool) -> Response:
    return JSONResponse(body, 200 if done else 202, NO_STORE)


async def _invalid(_request: Request, error: Exception) -> Response:
    return refusal(400, str(error))


async def _not_found(_request: Request, error: Exception) -> Response:
    return refusal(404, str(error))


async def _full(_request: Request, error: Exception) -> Response:
    return refusal(503, str(error), reason="full")


async def _away(_request: Request, __error: Exception) -> Response:
    return refusal(503, "the database does not answer; try again", reason="database")


async def _gone(_request: Request, __error: Exception) -> Response:
    return Response(status_code=GONE)
