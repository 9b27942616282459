"""Which IP addresses are of the open internet: an explicit table, judged address by address.

Used by `policy`. Not `ipaddress.is_global`: Python 3.11 calls the metadata address of clouds, 6to4
spellings of loopback and some multicast groups global. The table is the IANA registries of special
addresses, and one address of a cloud that looks public and is not.
"""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_V4 = ipaddress.IPv4Network
_V6 = ipaddress.IPv6Network

IPV4_REFUSED = (
    (_V4((0, 8)), "this network"),
    (_V4("10.0.0.0/8"), "private"),
    (_V4("100.64.0.0/10"), "shared by carriers"),
    (_V4("127.0.0.0/8"), "loopback"),
    (_V4("168.63.129.16/32"), "a cloud's own service"),
    (_V4("169.254.0.0/16"), "link-local, where clouds keep their metadata"),
    (_V4("172.16.0.0/12"), "private"),
    (_V4("192.0.0.0/24"), "protocol assignments"),
    (_V4("192.0.2.0/24"), "documentation"),
    (_V4("192.31.196.0/24"), "AS112"),
    (_V4("192.52.193.0/24"), "AMT"),
    (_V4("192.88.99.0/24"), "6to4 relays"),
    (_V4("192.168.0.0/16"), "private"),
    (_V4("192.175.48.0/24"), "AS112"),
    (_V4("198.18.0.0/15"), "benchmarks"),
    (_V4("198.51.100.0/24"), "documentation"),
    (_V4("203.0.113.0/24"), "documentation"),
    (_V4("224.0.0.0/4"), "multicast"),
    (_V4("240.0.0.0/4"), "reserved"),
)
IPV6_GLOBAL = _V6("2000::/3")  # the only part of IPv6 that is handed out
IPV6_REFUSED = (
    (_V6("2001::/23"), "protocol assignments, Teredo among them"),
    (_V6("2001:db8::/32"), "documentation"),
    (_V6("2002::/16"), "6to4"),
    (_V6("2620:4f:8000::/48"), "AS112"),
    (_V6("3fff::/20"), "documentation"),
)
NAT64 = _V6("64:ff9b::/96")


def parse(text: str) -> Address | None:
    """The address that a text spells strictly; None for everything else (zones, too)."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    zoned = isinstance(found, ipaddress.IPv6Address) and found.scope_id is not None
    return None if zoned else found


def embedded(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a NAT64 address leads to; None = it is none."""
    if isinstance(address, ipaddress.IPv6Address) and address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None


def is_mapped(address: Address) -> bool:
    """Whether it is an IPv4 address in disguise (::ffff:…): systems connect to that."""
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def refused(address: Address, *, nat64: bool) -> str:
    """Why the table refuses an address, in a few words; "" = it is of the open internet.

    Args:
        address: to be called.
        nat64: judge an address of 64:ff9b::/96 by the IPv4 address inside.
    """
    inner = embedded(address) if nat64 else None
    if inner is not None:
        address = inner
    if isinstance(address, ipaddress.IPv4Address):
        return next((why for network, why in IPV4_REFUSED if address in network), "")
    if address not in IPV6_GLOBAL:
        return "not of the public part of IPv6"
    return next((why for network, why in IPV6_REFUSED if address in network), "")
