"""Reading one file of one slot, believing nothing: a damaged file is an error, never a loop.

Used by the metrics program, and by a writer before it goes on where its slot's last life ended.

The layout is prometheus_client's (its own reader trusts lengths that a damaged file can make
negative): 4 bytes used, 4 of padding; then entries of length, key as JSON padded to 8 bytes,
value and timestamp as doubles. Writers append the entry before they raise `used`, and a read goes
from the front, so that an entry half written is never seen.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

LARGEST = 1 << 24  # bytes of a file that are looked at
HEAD = 8  # bytes before the first entry
_NAME = re.compile(r"weirkeeper_[a-z0-9_]{1,100}")
_LABEL = re.compile(r"[a-z][a-z0-9_]{0,30}")


class Damaged(Exception):
    """A file that no writer of ours left like this."""


class Entry(NamedTuple):
    """One number: its family, its sample's name, labels and help text."""

    family: str
    name: str
    labels: Mapping[str, str]
    help_text: str
    value: float


def entries(path: Path) -> list[Entry]:
    """Every number of a file.

    Raises:
        Damaged: the file is not what a writer leaves.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        data = file.read(LARGEST)
    if len(data) < HEAD:
        raise Damaged("too short")
    (used,) = struct.unpack_from("i", data)
    if used == 0:
        return []  # made a moment ago
    if not HEAD <= used <= len(data):
        raise Damaged(f"{used} bytes used of {len(data)}")
    return [_entry(key, struct.unpack_from("d", data, at)[0]) for key, at in walk(data, used)]


def walk(data: bytes, used: int) -> Iterator[tuple[bytes, int]]:
    """Each entry's key, and where its value lies.

    Raises:
        Damaged: they are not as a writer leaves them.
    """
    at = HEAD
    while at < used:
        if at + 4 > used:
            raise Damaged("an entry without its length")
        (length,) = struct.unpack_from("i", data, at)
        value_at = at + 4 + length + (8 - (length + 4) % 8)
        if length <= 0 or value_at + 16 > used:
            raise Damaged(f"an entry of {length} bytes at {at}")
        yield data[at + 4 : at + 4 + length], value_at
        at = value_at + 16


def _entry(key: bytes, value: float) -> Entry:
    try:
        family, name, labels, help_text = json.loads(key)
        fits = (
            _NAME.fullmatch(family)
            and _NAME.fullmatch(name)
            and isinstance(help_text, str)
            and all(_LABEL.fullmatch(k) and isinstance(v, str) for k, v in labels.items())
        )
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged("a key that is none") from error
    if not fits:
        raise Damaged("a key that is none")
    return Entry(family, name, labels, help_text, value)
