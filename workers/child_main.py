"""Where a child begins: puts the adapters, the handlers and the pool's protocol together.

Before this: the fork server, which has imported this and workers.preload. Named, not called, by the
queue process, so that the pool never knows a handler.
"""

from __future__ import annotations

import socket
from contextlib import closing
from functools import partial

from shared.errors import ConfigurationError
from shared.postgres.driver.sessions import ChildSession
from shared.services.coroutines import Coroutines
from shared.services.process import forbid_new_privileges
from shared.telemetry import logs
from workers.pool.child import Attempt, Interruption, serve
from workers.preload import LOADED
from workers.runner import Runner, Surroundings


def main(channel: socket.socket, server: int) -> None:
    """Be a child of the pool.

    Args:
        channel: this child's end of its pipe.
        server: process id of the fork server.
    """
    with closing(Coroutines()) as coroutines:
        serve(channel, server, partial(_prepare, coroutines))


def _prepare(coroutines: Coroutines, interruption: Interruption) -> Attempt:
    settings = LOADED.settings
    if settings is None:
        raise ConfigurationError(LOADED.problem)
    if not LOADED.new_privileges:
        forbid_new_privileges()
    logs.setup(settings.log_level, process="child", queue=LOADED.queue)
    session = ChildSession(settings.database(), f"{LOADED.queue} child")
    session.guard()
    interruption.gently = coroutines.interrupt
    around = Surroundings(session, lambda: interruption.asked, interruption.report, coroutines)
    return Runner(LOADED.handlers, LOADED.hooks, around)
