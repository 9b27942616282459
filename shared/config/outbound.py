"""What this installation may call outside: the operator's word, in `WEIRKEEPER_OUTBOUND_*`.

Read once by `settings`; `shared.webhooks.policy` judges URLs and addresses by it. The defaults are
those of a machine on the open internet: https only, any port, nobody trusted by name.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast, get_args

from shared.config.env import Environment
from shared.errors import ConfigurationError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Http = Literal["no", "allowed", "yes"]
NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*"
)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Some of all hosts: networks, and exact names (lower case, no dot at the end)."""

    networks: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Outbound:
    """What may be called.

    Attributes:
        http: plain http as well: to nobody, to whom `allow` lists, or to everybody.
        ports: the only ones; empty = any.
        nat64: addresses of 64:ff9b::/96 are judged by the IPv4 address inside.
        allow: hosts to be called whatever the built-in rules say.
        deny: hosts never to be called; beats `allow`.
        ca_file: PEM bundle of further certificate authorities; "" = none.
    """

    http: Http = "no"
    ports: frozenset[int] = frozenset()
    nat64: bool = False
    allow: Hosts = Hosts()
    deny: Hosts = Hosts()
    ca_file: str = ""


def read_outbound(env: Environment) -> Outbound:
    """Read and check `WEIRKEEPER_OUTBOUND_*`.

    Raises:
        ConfigurationError: a value that is no network, name, port, or readable file.
    """
    return Outbound(
        http=cast("Http", env.choice("WEIRKEEPER_OUTBOUND_HTTP", get_args(Http))),
        ports=frozenset(_ports(env.text("WEIRKEEPER_OUTBOUND_PORTS"))),
        nat64=env.choice("WEIRKEEPER_OUTBOUND_NAT64", ("no", "yes")) == "yes",
        allow=_hosts("WEIRKEEPER_OUTBOUND_ALLOW", env.text("WEIRKEEPER_OUTBOUND_ALLOW")),
        deny=_hosts("WEIRKEEPER_OUTBOUND_DENY", env.text("WEIRKEEPER_OUTBOUND_DENY")),
        ca_file=_ca_file(env.text("WEIRKEEPER_OUTBOUND_CA")),
    )


def _items(raw: str) -> Iterator[str]:
    return (item for item in (part.strip() for part in raw.split(",")) if item)


def _ports(raw: str) -> Iterator[int]:
    for item in _items(raw):
        if not re.fullmatch(r"[0-9]{1,5}", item) or not 1 <= int(item) <= 65_535:
            raise ConfigurationError.of(
                "WEIRKEEPER_OUTBOUND_PORTS", 'ports such as "443,8443"', item, "correct it"
            )
        yield int(item)


def _hosts(setting: str, raw: str) -> Hosts:
    networks: list[Network] = []
    names: list[str] = []
    for item in _items(raw):
        network = _network(item)
        if network is not None:
            networks.append(network)
        elif NAME.fullmatch(item.lower().rstrip(".")) and not item.rpartition(".")[2].isdigit():
            names.append(item.lower().rstrip("."))
        else:
            raise ConfigurationError.of(
                setting,
                'networks and names such as "10.1.0.0/16,hooks.corp.example"',
                item,
                "correct it (a network has no bits set behind its length)",
            )
    return Hosts(tuple(networks), frozenset(names))


def _network(item: str) -> Network | None:
    try:
        return ipaddress.ip_network(item)
    except ValueError:
        return None


def _ca_file(raw: str) -> str:
    if not raw:
        return raw
    import ssl  # noqa: PLC0415  (10 ms that only those pay who set it)

    try:
        ssl.create_default_context(cafile=raw)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError.of(
            "WEIRKEEPER_OUTBOUND_CA", "a file of certificates in PEM", raw, f"correct it ({error})"
        ) from error
    return raw
