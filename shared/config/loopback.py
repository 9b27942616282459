"""The one address that our servers may bind: the machine's own. Read by settings."""

from __future__ import annotations

import ipaddress

from shared.errors import ConfigurationError

# Where a receiver of webhooks may listen for trying them out. All of 127.0.0.0/8 is this machine;
# what listens on 127.0.0.1 alone (databases, proxies, our own ports) cannot be reached by it.
RECEIVER = "127.87.75.1"


def check_loopback(host: str) -> str:
    """Return the address to bind for WEIRKEEPER_HOST, if nobody outside can reach it.

    Raises:
        ConfigurationError: it is no loopback address.
    """
    if host == "localhost":
        return "127.0.0.1"
    try:
        if ipaddress.ip_address(host).is_loopback:
            return host
    except ValueError:
        pass
    raise ConfigurationError.of(
        "WEIRKEEPER_HOST",
        "a loopback address (127.0.0.1, ::1 or localhost)",
        host,
        "set one; for access from elsewhere put a proxy that checks its callers in front",
    )
