"""One life of a server: prepare, start, wait until ready, watch, stop in order.

Before it: checks. Everything that it starts ends with it, also when it is killed.
"""

from __future__ import annotations

import os
import secrets
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from shared.clock import SYSTEM
from shared.config.env import hand_down
from shared.config.loopback import RECEIVER
from shared.config.settings import Settings
from shared.services import exit_codes
from shared.services.stop import StopSignal
from weirkeeper.server import compose, database, published
from weirkeeper.server.account import Account
from weirkeeper.server.checks import Deployment, check_supervision
from weirkeeper.server.database import EmbeddedDatabase
from weirkeeper.server.folders import forget_sockets, prepare_home, socket_folder
from weirkeeper.server.greeting import greeting
from weirkeeper.server.leftovers import OTHERS, wait_for_end
from weirkeeper.server.lock import only_server
from weirkeeper.server.own import LOCAL, own_settings
from weirkeeper.server.ports import chosen_ports, refuse_taken
from weirkeeper.server.ready import Readiness, expected_roles
from weirkeeper.server.stopping import Stopping
from weirkeeper.server.supervisor import Supervisor
from weirkeeper.server.telling import complain, say

CONTROL_NAME = len("supervisor.sock.4194304")  # supervisord makes it under a name with its pid


@dataclass(frozen=True, slots=True)
class Start:
    """What one start stands on.

    Attributes:
        settings: of this server.
        deployment: what the checks found.
        embedded: our own Postgres, or None when DATABASE_URL names another.
        own: settings that this server makes itself.
        began: monotonic time at which the command was given.
    """

    settings: Settings
    deployment: Deployment
    embedded: EmbeddedDatabase | None
    own: Mapping[str, str]
    began: float

    @property
    def url(self) -> str:
        """The database's URL."""
        return self.embedded.url if self.embedded else self.settings.database()

    @property
    def patience(self) -> float:
        """Seconds that a stop in order may take."""
        return compose.stop_seconds(self.settings) + OTHERS


def serve(
    settings: Settings,
    deployment: Deployment,
    stop: StopSignal,
    began: float,
    *,
    receiver: bool = False,
) -> int:
    """Run until a stop is asked for; return the exit code.

    Args:
        settings: of this server.
        deployment: what the checks found.
        stop: SIGTERM and SIGINT arrive here.
        began: monotonic time at which the command was given.
        receiver: with our own Postgres, webhooks may be sent to a receiver on this machine.

    Raises:
        ConfigurationError: it cannot start.
    """
    home = prepare_home(settings.home)
    with only_server(home):
        drain = compose.stop_seconds(settings)
        if not wait_for_end(home, drain, say, lambda: stop.requested):
            say("stopped before anything was started")
            return exit_codes.OK
        cluster = database.find_cluster(settings, home) if settings.embedded else None
        refuse_taken(settings)
        embedded = database.prepare(cluster, settings, home, say) if cluster else None
        own = own_settings(home, receiver=receiver) if embedded else {}
        for name, value in own.items():
            hand_down(name, value)
        start = Start(settings, deployment, embedded, own, began)
        with chosen_ports(settings), _supervised(start) as supervisor:
            _tell_when_ready(start, supervisor, stop)
            if not stop.requested:
                _watch(supervisor, stop)
            code = exit_codes.OK
            if not supervisor.running():
                complain(f"supervisord ended by itself: {supervisor.last_words()}")
                code = exit_codes.FAILED
            return _stop(start, supervisor, stop) or code


@contextmanager
def _supervised(start: Start) -> Iterator[Supervisor]:
    settings, deployment = start.settings, start.deployment
    home = settings.home
    sockets = socket_folder(home / "run", CONTROL_NAME, Account("", os.geteuid(), os.getegid()))
    control = compose.Control(sockets / "supervisor.sock", secrets.token_urlsafe(24))
    command = start.embedded.command if start.embedded else None
    compose.complete(deployment.supervision, settings, deployment.queues, control, command)
    check_supervision(deployment, settings)
    configuration = compose.write(deployment.supervision, home)
    more = {
        "embedded": start.embedded is not None,
        "queues": list(deployment.queues),
        "settings": start.own,
    }
    published.publish(home, start.url, _psql(start.embedded), more)
    supervisor = Supervisor(configuration, home, control)
    try:
        yield supervisor
    finally:
        supervisor.stop(start.patience)
        published.withdraw(home)
        forget_sockets(sockets, home)


def _tell_when_ready(start: Start, supervisor: Supervisor, stop: StopSignal) -> None:
    home = start.settings.home
    roles = expected_roles(start.deployment.queues)
    addresses = Readiness(start.url, roles, supervisor, home / "log").wait(stop, say)
    if addresses is not None:
        seconds = SYSTEM.monotonic() - start.began
        receiver = {"receiver": RECEIVER} if start.own.keys() >= LOCAL.keys() else {}
        where, app = {**addresses, **receiver}, start.deployment.app
        for line in greeting(home, start.url, where, seconds, app):
            say(line)


def _watch(supervisor: Supervisor, stop: StopSignal) -> None:
    """Sleep until a stop is asked for or supervisord ends."""
    if not supervisor.running():
        return
    handle = os.pidfd_open(supervisor.process.pid)
    try:
        select.select([stop.fileno(), handle], [], [])
    finally:
        os.close(handle)


def _stop(start: Start, supervisor: Supervisor, stop: StopSignal) -> int:
    began = SYSTEM.monotonic()
    if supervisor.running():
        say("stopping: the relay, then the queues together, listener, metrics, database")
    stopping = Stopping(start.url, start.settings, stop, say)
    if not supervisor.stop(start.patience, stopping.look):
        supervisor.process.kill()  # its programs get SIGTERM from the kernel
        complain(f"supervisord did not end within {start.patience:g} s and was killed")
        return exit_codes.DRAIN_OVERRAN
    wait_for_end(start.settings.home, compose.stop_seconds(start.settings), say)
    if start.embedded is not None:
        start.embedded.stop()
        if not start.embedded.cluster.account.name:
            forget_sockets(start.embedded.sockets, start.settings.home)
    say(f"stopped after {SYSTEM.monotonic() - began:.1f} s")
    return exit_codes.OK


def _psql(embedded: EmbeddedDatabase | None) -> str:
    own = embedded.cluster.binaries / "psql" if embedded else None
    return str(own) if own and own.is_file() else "psql"
