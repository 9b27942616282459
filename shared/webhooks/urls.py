"""The URL rules: a URL taken apart by one strict parser, whose parts are all that is used later.

Stands before `policy`, which judges by the operator's word what was found here. A URL that two
parsers could read differently is refused, not guessed at.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from shared.webhooks.addresses import Address, parse
from shared.webhooks.denied import Denied

LONGEST = 2_048
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)([^#]*)(#.*)?", re.DOTALL)
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # what some library takes for a piece of an address
_DOTTED = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")
DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL leads.

    Attributes:
        scheme: "https" or "http".
        host: lower case, without the dot at the end or brackets; goes into Host and SNI.
        port: 1 … 65535.
        path: with query, begins with "/".
        literal: the host, when it is an address and no name.
    """

    scheme: str
    host: str
    port: int
    path: str
    literal: Address | None

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL and in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL in its one spelling."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def shown(self) -> str:
        """The URL as logs and pages show it: without the query, which may hold a token."""
        return f"{self.scheme}://{self.authority}{self.path.partition('?')[0]}"


def take_apart(url: str) -> Target:
    """Read a URL by the rules.

    Raises:
        Denied: it breaks one: url_length, url_chars, url_backslash, scheme, fragment, userinfo,
            url_parse, no_host, port or numeric_host.
    """
    if len(url) > LONGEST:
        raise Denied("url_length", f"expected at most {LONGEST} characters; got {len(url)}")
    strange = next((sign for sign in url if not "!" <= sign <= "~"), None)
    if strange is not None:
        raise Denied("url_chars", f"expected visible ASCII; got {strange!r}; percent-encode it")
    if "\\" in url:
        raise Denied("url_backslash", "expected no backslash: libraries read it differently")
    found = _PARTS.fullmatch(url)
    if found is None or found[1].lower() not in DEFAULT_PORTS:
        raise Denied("scheme", "expected a URL that begins with https://")
    if found[4] is not None:
        raise Denied("fragment", "expected no '#': what stands behind it is never sent")
    return _target(found[1].lower(), found[2], found[3])


def _target(scheme: str, authority: str, path: str) -> Target:
    if "@" in authority:
        raise Denied("userinfo", "expected no user or password in the URL; use a header")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise Denied("url_parse", "expected host or host:port with a port up to 65535")
    if not found[1]:
        raise Denied("no_host", "expected a host")
    port = DEFAULT_PORTS[scheme] if found[2] is None else int(found[2])
    if port > 65_535:
        raise Denied("url_parse", f"expected a port up to 65535; got {port}")
    if port == 0:
        raise Denied("port", "expected a port from 1 on; got 0")
    host, literal = _host(found[1])
    return Target(scheme, host, port, path if path.startswith("/") else "/" + path, literal)


def _host(raw: str) -> tuple[str, Address | None]:
    """(host, its address when it is none that must be resolved)."""
    if raw.startswith("["):
        return _bracketed(raw[1:-1])
    name = raw.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _numeric(name)
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise Denied("url_parse", "expected a host name of letters, digits, '-' and dots")
    return name, None


def _bracketed(inside: str) -> tuple[str, Address | None]:
    if "%" in inside:
        raise Denied("ip", "expected an address without a zone: those are of one machine's links")
    address = parse(inside)
    if not isinstance(address, ipaddress.IPv6Address):
        raise Denied("url_parse", "expected an IPv6 address in the brackets")
    return str(address), address


def _numeric(name: str) -> tuple[str, Address | None]:
    """A host that ends in a number is an address in four plain decimal parts, or nothing."""
    address = parse(name) if _DOTTED.fullmatch(name) else None
    if address is None:
        raise Denied(
            "numeric_host",
            "expected a name, or an IPv4 address in four decimal parts without zeros",
        )
    return str(address), address
