"""The metrics program's routes: /metrics, /livez, /readyz.

Stands after the collector's snapshot and the slots' files. A scrape reads files and memory only;
it answers the same while the database is away.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from metrics.families import FROM_DATABASE, OF_ITSELF, rendered
from metrics.files import merged
from shared.services.routing import application, health
from shared.stats import Reading


class Source(Protocol):
    """Something that keeps numbers in memory."""

    def readings(self) -> list[Reading]:
        """The newest."""
        ...


class Scrape:
    """Everything that there is to tell now.

    Args:
        folder: HOME/metrics.
        sources: have the numbers of the database and of supervisord.
        build: labels of build_info.
    """

    def __init__(self, folder: Path, sources: Sequence[Source], build: tuple[str, str]) -> None:
        self._folder = folder
        self._sources = sources
        self._build = build

    def collect(self) -> list[Metric]:
        """The families; the method by which prometheus_client asks a registry."""
        files = merged(self._folder)
        readings = [
            *(reading for source in self._sources for reading in source.readings()),
            Reading("metrics_damaged_files", (), files.damaged),
            Reading("build_info", self._build, 1),
        ]
        return [*files.families, *rendered((*FROM_DATABASE, *OF_ITSELF), readings)]


def app(scrape: Scrape, live: Callable[[], str], ready: Callable[[], str]) -> Starlette:
    """The ASGI application.

    Args:
        scrape: what is told.
        live: what is wrong with the program, or "".
        ready: why it had better not be asked, or "".
    """

    async def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(scrape), headers={"content-type": content_type})

    async def livez(_request: Request) -> Response:
        return health(live())

    async def readyz(_request: Request) -> Response:
        return health(ready())

    async def index(_request: Request) -> Response:
        return PlainTextResponse("Weirkeeper metrics: /metrics, /livez, /readyz\n")

    endpoints = {"/": index, "/metrics": metrics, "/livez": livez, "/readyz": readyz}
    return application(endpoints, ("/metrics", "/livez", "/readyz"))
