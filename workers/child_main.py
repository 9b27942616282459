"""Where a child begins: puts the adapters, the handlers and the pool's protocol together.

Before this: the fork server, which has imported this and workers.preload. Named, not called, by the
queue process, so that the pool never knows a handler.
"""

from __future__ import annotations

import socket

from shared.config.settings import Settings
from shared.errors import ConfigurationError
from shared.postgres.sessions import ChildSession
from shared.telemetry import logs
from workers.pool.child import Attempt, Interruption, serve
from workers.preload import LOADED
from workers.runner import Runner


def main(channel: socket.socket, server: int) -> None:
    """Be a child of the pool.

    Args:
        channel: this child's end of its pipe.
        server: process id of the fork server.
    """
    serve(channel, server, _prepare)


def _prepare(interruption: Interruption) -> Attempt:
    if LOADED.problem:
        raise ConfigurationError(LOADED.problem)
    settings = Settings.load()
    logs.setup(settings.log_level, process="child", queue=LOADED.queue)
    session = ChildSession(settings.database(), f"{LOADED.queue} child")
    return Runner(LOADED.handlers, session, lambda: interruption.asked)
