"""Ports: refused early when somebody has them, chosen when 0 was asked for.

What is chosen is kept for the server's life: a program that is started again answers where the
greeting said.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from shared.config.env import hand_down
from shared.config.settings import Settings
from shared.errors import ConfigurationError


def refuse_taken(settings: Settings) -> None:
    """Try each port that this server will bind.

    Raises:
        ConfigurationError: one is taken, or the address is not this machine's.
    """
    wanted = [
        ("WEIRKEEPER_LISTENER_PORT", settings.host, settings.listener_port),
        ("WEIRKEEPER_METRICS_PORT", settings.host, settings.metrics_port),
    ]
    if settings.embedded:
        wanted.append(("WEIRKEEPER_POSTGRES_PORT", "127.0.0.1", settings.postgres_port))
    for name, host, port in wanted:
        if port != 0:
            _refuse_one(name, host, port)


def free_port() -> int:
    """A port of 127.0.0.1 that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def chosen_ports(settings: Settings) -> Iterator[None]:
    """Choose the ports for which 0 was asked, hand them down, and keep them for us.

    A socket that is bound and does not listen lets a program of ours listen there (both say
    SO_REUSEADDR), and keeps the kernel from giving the port to a connection while none does.
    """
    with ExitStack() as kept:
        for name, port in (
            ("WEIRKEEPER_LISTENER_PORT", settings.listener_port),
            ("WEIRKEEPER_METRICS_PORT", settings.metrics_port),
        ):
            if port == 0:
                held = kept.enter_context(_reusable(settings.host))
                held.bind((settings.host, 0))
                hand_down(name, str(held.getsockname()[1]))
        yield


def _reusable(host: str) -> socket.socket:
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return found


def _refuse_one(name: str, host: str, port: int) -> None:
    with _reusable(host) as probe:
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError.of(
                name,
                "a port that we can bind",
                f"{host}:{port} ({error.strerror})",
                f"stop what uses it, or set {name} to another (0 = a free one)",
            ) from error
