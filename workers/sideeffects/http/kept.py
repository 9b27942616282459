"""What is kept of an answer: headers that fit and hold no secrets, and the beginning of a body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MOST_HEADERS = 64
MOST_BYTES = 8 * 1024
MASK = "***"
_SECRET = re.compile(
    r"cookie|auth|token|secret|session|password|signature|credential|api-?key|csrf"
)
_STRANGE = re.compile(r"[^ -~]")


def headers(raw: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    """Names in lower case with their values, at most 64 and 8 KiB, as plain ASCII.

    A value whose name sounds like a secret is masked; where a redirect leads is shown without its
    query.
    """
    return tuple(_fitting(raw))


def _fitting(raw: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, str]]:
    size = 0
    for number, (name_bytes, value_bytes) in enumerate(raw):
        name = _plain(name_bytes).lower()
        value = _shown(name, _plain(value_bytes))
        size += len(name) + len(value)
        if number >= MOST_HEADERS or size > MOST_BYTES:
            return
        yield name, value


def _shown(name: str, value: str) -> str:
    if _SECRET.search(name):
        return MASK
    if name in ("location", "refresh", "content-location", "link") and "?" in value:
        return value.partition("?")[0] + "?" + MASK
    return value


def _plain(raw: bytes) -> str:
    return _STRANGE.sub("?", raw.decode("latin-1"))
