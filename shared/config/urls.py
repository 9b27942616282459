"""Database URLs: refused when libpq could read them otherwise than meant, shown without secrets.

Read by settings. A part of a password may stand anywhere in a URL that is not well formed, and
libpq quotes what it cannot read; so such a one is neither handed on nor shown.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from shared.errors import ConfigurationError

EXPECTED = "a URL that begins with postgresql:// (postgresql://user:password@host:port/database)"
ENCODE = "percent-encode what is special in its parts (/ is %2F, @ is %40, : is %3A, % is %25)"
# As libpq cuts: credentials end at the first @ that comes before any /.
_WELL_FORMED = re.compile(
    r"""(?P<scheme>postgres(?:ql)?://)
    (?: (?P<user>[^:@/?\s]*) (?P<password>:[^@/\s]*)? @ )?
    (?P<hosts> (?: \[[0-9a-fA-F:.%]+\] | [^:@/?,\[\]\s]* ) (?: :\d* )?
        (?: , (?: \[[0-9a-fA-F:.%]+\] | [^:@/?,\[\]\s]* ) (?: :\d* )? )* )
    (?P<database> (?: /[^@?\s]* )? )
    (?: \? (?P<query> [^=&@\s]+=[^=&@\s]* (?: &[^=&@\s]+=[^=&@\s]* )* )? )?""",
    re.VERBOSE,
)
_BAD_PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})|%00")
# Values of other parameters are masked: a misspelt "password" is none that libpq knows.
SHOWN = (
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "sslmode",
    "connect_timeout",
    "application_name",
    "target_session_attrs",
)


def check_url(name: str, url: str) -> str:
    """Return the URL when libpq will read it as it is meant.

    Args:
        name: of the setting.
        url: its value.

    Raises:
        ConfigurationError: it will not; told without any of it.
    """
    if not url.startswith(("postgresql://", "postgres://")):
        scheme = re.match(r"[a-z][a-z0-9+]{0,20}://", url)
        got = f"{scheme[0]}…" if scheme else "a value without postgresql:// before it"
        raise ConfigurationError.of(name, EXPECTED, got, f"set {name}")
    if not _read(url):
        raise ConfigurationError.of(name, EXPECTED, "one that cannot be read so", ENCODE)
    return url


def masked(url: str) -> str:
    """A database URL as it may be shown: without anything secret."""
    parts = _read(url)
    if not parts:
        return "***" if url else ""
    found = parts.groupdict(default="")
    password = ":***" if found["password"] else ""
    at = "@" if parts["user"] is not None else ""
    query = "&".join(map(_shown, found["query"].split("&"))) if found["query"] else ""
    place = f"{found['user']}{password}{at}{found['hosts']}{found['database']}"
    return f"{found['scheme']}{place}{'?' if query else ''}{query}"


def _read(url: str) -> re.Match[str] | None:
    return None if _BAD_PERCENT.search(url) else _WELL_FORMED.fullmatch(url)


def _shown(parameter: str) -> str:
    key, _, value = parameter.partition("=")
    return f"{key}={value if unquote(key) in SHOWN else '***'}"
