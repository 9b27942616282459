"""A small HTTP server in the main thread: bound to loopback, stopped by the program's StopSignal.

Stands under the programs with an address (listener, metrics), which hand it an ASGI application.
There are no tokens yet, so it refuses to bind wider than this machine. Blocking work belongs in a
service's thread, never here.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from starlette.types import ASGIApp
from uvicorn import Config, Server

from shared.errors import ConfigurationError
from shared.services.admission import Admission, Connection
from shared.services.stop import StopSignal

TICK = 1.0  # seconds between two turns of a server that nobody asks
LAST_ANSWERS = 2  # seconds that answers under way may take after a stop


def bind(host: str, port: int, setting: str) -> socket.socket:
    """Take an address.

    Args:
        host: of shared.config.loopback.
        port: 0 = a free one.
        setting: where the port comes from, for the message.

    Raises:
        ConfigurationError: somebody has the port, or it may not be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(128)
    except OSError as error:
        found.close()
        why = "in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise ConfigurationError.of(
            setting,
            f"a free port of {host}",
            port,
            f"it is {why}: stop who has it, or set {setting} (0 = any free one)",
        ) from error
    return found


def address(bound: socket.socket) -> str:
    """`127.0.0.1:8711`, as it stands in the process row."""
    host, port = bound.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Server(Server):
    """uvicorn without its own signal handlers: the StopSignal is told first."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._told = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def leave(self) -> None:
        """Have it end what it serves, and return."""
        self.should_exit = True
        self._told.set()

    async def main_loop(self) -> None:
        """Tick once a second: uvicorn does ten times, to see whether it is to leave."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK):
                    await self._told.wait()


def serve(
    app: ASGIApp,
    bound: socket.socket,
    stop: StopSignal,
    on_stop: Callable[[], None] = lambda: None,
    turned: Callable[[], None] = lambda: None,
) -> None:
    """Answer requests until a stop is requested; call from the main thread.

    Args:
        app: the ASGI application.
        bound: from `bind`; closed at the end.
        stop: ends it, within `LAST_ANSWERS` seconds.
        on_stop: called first, on the event loop: end what would wait longer.
        turned: called about once a second, on the event loop.
    """
    server = _Server(_config(app, turned))
    asyncio.run(_until_stopped(server, bound, stop, on_stop))


def _config(app: ASGIApp, turned: Callable[[], None]) -> Config:
    async def tick() -> None:
        turned()

    return Config(
        Admission(app),
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_ANSWERS,
        callback_notify=tick,
        timeout_notify=0,
    )


async def _until_stopped(
    server: _Server, bound: socket.socket, stop: StopSignal, on_stop: Callable[[], None]
) -> None:
    loop = asyncio.get_running_loop()

    def asked() -> None:
        loop.remove_reader(stop.fileno())
        on_stop()
        server.leave()

    loop.add_reader(stop.fileno(), asked)
    await server.serve([bound])
