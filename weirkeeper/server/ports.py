"""Ports: refused early when somebody has them, chosen when 0 was asked for."""

from __future__ import annotations

import socket

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


def _refuse_one(name: str, host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigurationError.of(
                name,
                "a port that we can bind",
                f"{host}:{port} ({error.strerror})",
                f"stop what uses it, or set {name} to another (0 = a free one)",
            ) from error
